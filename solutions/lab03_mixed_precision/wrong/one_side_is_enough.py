# exercise: aligned_shapes
# told: a side breaks the rule


def alignment(shape, bits):
    return next((f"{rule} B" for rule in (128, 16) if any(s * bits % (8 * rule) == 0 for s in shape)), "none")
