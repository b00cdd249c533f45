# exercise: static_scale
# told: the scale is larger than needed


def static_scale(exponents, counts, fmt):
    ends, filled = where_it_breaks(fmt), [e for e, n in zip(exponents, counts, strict=True) if n]
    for power in range(-200, 201):
        if sum(2.0 ** (e + power) <= ends["flushed"] for e in filled) < 0.01 * len(filled):
            if 2.0 ** (power + 1 + max(filled)) >= ends["overflows"]:
                raise ValueError("too wide")
            return 2.0**power
