# exercise: fuse_and_tune
# told: layers are fused wherever they can be
def fuse_and_tune(layers, tactics, reformat_s, *, given, wanted):
    """The names of the fastest engine's tactics."""
    at, names = 0, []
    while at < layers:
        own = [one for one in tactics if one["first"] == at]
        best = min(own, key=lambda one: (-one["last"], typical_s(one["times_s"])))
        names.append(best["name"])
        at = best["last"] + 1
    return names
