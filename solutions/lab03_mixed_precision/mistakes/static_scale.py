# %% mistake="as_large_as_possible"
# told: your scale is larger than needed
# like: counts_bins
_right_scale = static_scale


def static_scale(exponents, counts, fmt):
    scale, highest = (
        _right_scale(exponents, counts, fmt),
        max(e for e, n in zip(exponents, counts, strict=True) if n),
    )
    while 2.0 ** (highest + 1) * scale * 2 < where_it_breaks(fmt)["overflows"]:
        scale *= 2
    return scale


# %% mistake="counts_bins"
# told: your scale is larger than needed
def static_scale(exponents, counts, fmt):
    ends, filled = (
        where_it_breaks(fmt),
        [e for e, n in zip(exponents, counts, strict=True) if n],
    )
    for power in range(-200, 201):
        if sum(2.0 ** (e + power) <= ends["flushed"] for e in filled) < 0.01 * len(
            filled
        ):
            if 2.0 ** (power + 1 + max(filled)) >= ends["overflows"]:
                raise ValueError("too wide")
            return 2.0**power


# %% mistake="never_refuses_a_histogram"
# told: your function returned a scale where no scale is right
def static_scale(exponents, counts, fmt):
    for power in range(-200, 201):
        lost = [
            n
            for e, n in zip(exponents, counts, strict=True)
            if 2.0 ** (e + power) <= where_it_breaks(fmt)["flushed"]
        ]
        if sum(lost) < 0.01 * sum(counts):
            return 2.0**power


# %% mistake="one_bin_too_few"
# told: your scale still flushes too many values
_right_scale = static_scale


def static_scale(exponents, counts, fmt):
    return _right_scale(exponents, counts, fmt) / 2
