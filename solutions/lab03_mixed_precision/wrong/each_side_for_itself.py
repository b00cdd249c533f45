# exercise: aligned_shapes
# told: padded further than the others let it pay


def alignment(shape, bits):
    """The strictest rule that all sides obey: "128 B", "16 B" or "none"."""
    for rule, rule_bits in (("128 B", 1024), ("16 B", 128)):
        if all(side % (rule_bits // bits) == 0 for side in shape):
            return rule
    return "none"


def best_padding(shape, bits, *, rates):
    """[m, k, n], each side as it is or padded,
    such that the product takes the least time."""
    sides = []
    for side in shape:
        padded = [-(-side // step) * step for step in (128 // bits, 1024 // bits)]
        sides.append([side, *padded])
    return [min(options, key=lambda side: side / rates[alignment([side], bits)]) for options in sides]
