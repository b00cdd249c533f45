# exercise: aligned_shapes
# told: more was padded than pays


def best_padding(shape, bits, *, rates):
    return [-(-side // (1024 // bits)) * (1024 // bits) for side in shape]
