# %% mistake="chosen_by_first_runs"
# told: your code compares tactics by their first runs
# %% replace
after_s = spent_s + typical_s(one["times_s"])
# %% by
after_s = spent_s + one["times_s"][0]


# %% mistake="cold_run_counts"
# told: your code counts the first run, which also loads the kernel
# %% replace
warm = sorted(times_s[1:])
# %% by
warm = sorted(times_s)


# %% mistake="conversions_free"
# told: your code does not count conversions
# %% replace
reached(at, form, spent_s + reformat_s[at], names)
# %% by
reached(at, form, spent_s, names)


# %% mistake="converted_every_time"
# told: your code counts a conversion between equal formats
# %% replace
after_s = spent_s + typical_s(one["times_s"])
# %% by
after_s = spent_s + typical_s(one["times_s"]) + reformat_s[at]


# %% mistake="fastest_run_counts"
# told: your code takes the fastest run, not a typical one
# %% replace
return warm[len(warm) // 2]
# %% by
return warm[0]


# %% mistake="fused_wherever_it_can_be"
# told: your code fuses layers wherever possible
def fuse_and_tune(layers, tactics, reformat_s, *, given, wanted):
    """The names of the fastest engine's tactics."""
    at, names = 0, []
    while at < layers:
        own = [one for one in tactics if one["first"] == at]
        best = min(own, key=lambda one: (-one["last"], typical_s(one["times_s"])))
        names.append(best["name"])
        at = best["last"] + 1
    return names


# %% mistake="greedy_engine"
# told: your code chooses each tactic without regard to those after it
def fuse_and_tune(layers, tactics, reformat_s, *, given, wanted):
    """The names of the fastest engine's tactics."""
    at, form, names = 0, given, []

    def price(one):
        extra = 0 if one["reads"] == form else reformat_s[at]
        return (typical_s(one["times_s"]) + extra) / (one["last"] - one["first"] + 1)

    while at < layers:
        best = min((one for one in tactics if one["first"] == at), key=price)
        names.append(best["name"])
        at, form = best["last"] + 1, best["writes"]
    return names


# %% mistake="input_in_any_format"
# told: your code does not count the conversion of the input
# %% replace
best = {(0, given): (0.0, [])}  # up to a layer, in a format
# %% by
best = {(0, one["reads"]): (0.0, []) for one in tactics}
best[0, given] = (0.0, [])


# %% mistake="mean_with_interruptions"
# told: your code takes the mean, which includes interrupted runs
def typical_s(times_s):
    """The time of a tactic."""
    return sum(times_s[1:]) / len(times_s[1:])


# %% mistake="nothing_fused"
# told: your engine fuses no layers
# %% replace
if one["first"] == at:
    spent_s, names = best[at, one["reads"]]
    after_s = spent_s + typical_s(one["times_s"])
    reached(one["last"] + 1, one["writes"], after_s, [*names, one["name"]])
# %% by
if one["first"] == at == one["last"]:
    spent_s, names = best[at, one["reads"]]
    after_s = spent_s + typical_s(one["times_s"])
    reached(one["last"] + 1, one["writes"], after_s, [*names, one["name"]])


# %% mistake="one_format_throughout"
# told: your engine stays in one format
def fuse_and_tune(layers, tactics, reformat_s, *, given, wanted):
    """The names of the fastest engine's tactics."""
    plans = []
    for form in {one["reads"] for one in tactics}:
        best = {0: (reformat_s[0] * (form != given), [])}
        for at in range(layers):
            for one in tactics:
                same = one["reads"] == one["writes"] == form
                if at in best and one["first"] == at and same:
                    after_s = best[at][0] + typical_s(one["times_s"])
                    new = (after_s, [*best[at][1], one["name"]])
                    best[one["last"] + 1] = min(best.get(one["last"] + 1, new), new)
        if layers in best:
            spent_s, names = best[layers]
            plans.append((spent_s + reformat_s[layers] * (form != wanted), names))
    return min(plans)[1]


# %% mistake="output_in_any_format"
# told: your code does not count the conversion of the output
def fuse_and_tune(layers, tactics, reformat_s, *, given, wanted):
    """The names of the fastest engine's tactics."""
    best = {(0, given): (0.0, [])}  # up to a layer, in a format

    def reached(at, form, spent_s, names):
        best[at, form] = min(best.get((at, form), (spent_s, names)), (spent_s, names))

    for at in range(layers):
        spent_s, names = min(found for (here, _), found in best.items() if here == at)
        for form in {wanted} | {one["reads"] for one in tactics}:
            reached(at, form, spent_s + reformat_s[at], names)
        for one in tactics:
            if one["first"] == at:
                spent_s, names = best[at, one["reads"]]
                after_s = spent_s + typical_s(one["times_s"])
                reached(one["last"] + 1, one["writes"], after_s, [*names, one["name"]])
    return min(found for (here, _), found in best.items() if here == layers)[1]
