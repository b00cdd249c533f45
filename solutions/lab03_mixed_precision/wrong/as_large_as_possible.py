# exercise: static_scale
# told: the scale is larger than needed
# like: counts_bins.py


_right_scale = static_scale


def static_scale(exponents, counts, fmt):
    scale, highest = _right_scale(exponents, counts, fmt), max(e for e, n in zip(exponents, counts, strict=True) if n)
    while 2.0 ** (highest + 1) * scale * 2 < where_it_breaks(fmt)["overflows"]:
        scale *= 2
    return scale
