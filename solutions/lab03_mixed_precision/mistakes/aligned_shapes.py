# %% mistake="each_side_for_itself"
# told: further than is useful while the other sides stay as they are
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
    return [
        min(options, key=lambda side: side / rates[alignment([side], bits)])
        for options in sides
    ]


# %% mistake="multiples_of_eight"
# told: your answer is too weak: the product is better aligned
def alignment(shape, bits):
    return (
        "128 B"
        if all(s % 64 == 0 for s in shape)
        else "16 B"
        if all(s % 8 == 0 for s in shape)
        else "none"
    )


# %% mistake="never_pads"
# told: your code leaves the shape unchanged, but a padded shape takes less time
def best_padding(shape, bits, *, rates):
    return list(shape)


# %% mistake="one_side_is_enough"
# told: a side breaks the rule that you returned
def alignment(shape, bits):
    return next(
        (
            f"{rule} B"
            for rule in (128, 16)
            if any(s * bits % (8 * rule) == 0 for s in shape)
        ),
        "none",
    )


# %% mistake="pads_to_the_widest"
# told: you padded more than is worth it
def best_padding(shape, bits, *, rates):
    return [-(-side // (1024 // bits)) * (1024 // bits) for side in shape]
