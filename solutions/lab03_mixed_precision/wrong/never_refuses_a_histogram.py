# exercise: static_scale
# told: a scale came back where none is right


def static_scale(exponents, counts, fmt):
    for power in range(-200, 201):
        lost = [
            n for e, n in zip(exponents, counts, strict=True) if 2.0 ** (e + power) <= where_it_breaks(fmt)["flushed"]
        ]
        if sum(lost) < 0.01 * sum(counts):
            return 2.0**power
