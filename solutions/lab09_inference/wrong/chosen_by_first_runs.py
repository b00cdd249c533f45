# exercise: fuse_and_tune
# told: the engine was chosen by first runs
def fuse_and_tune(layers, tactics, reformat_s, *, given, wanted):
    """The names of the fastest engine's tactics."""
    best = {(0, given): (0.0, [])}  # up to a layer, in a format

    def reached(at, form, spent_s, names):
        best[at, form] = min(best.get((at, form), (spent_s, names)), (spent_s, names))

    for at in range(layers + 1):
        spent_s, names = min(found for (here, _), found in best.items() if here == at)
        for form in {wanted} | {one["reads"] for one in tactics}:
            reached(at, form, spent_s + reformat_s[at], names)
        for one in tactics:
            if one["first"] == at:
                spent_s, names = best[at, one["reads"]]
                after_s = spent_s + one["times_s"][0]
                reached(one["last"] + 1, one["writes"], after_s, [*names, one["name"]])
    return best[layers, wanted][1]
