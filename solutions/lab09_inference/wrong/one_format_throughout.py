# exercise: fuse_and_tune
# told: the engine stays in one format
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
