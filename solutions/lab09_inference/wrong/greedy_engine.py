# exercise: fuse_and_tune
# told: each choice was made without those behind it
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
