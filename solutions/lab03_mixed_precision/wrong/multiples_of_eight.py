# exercise: aligned_shapes
# told: the product is better aligned than that


def alignment(shape, bits):
    return "128 B" if all(s % 64 == 0 for s in shape) else "16 B" if all(s % 8 == 0 for s in shape) else "none"
