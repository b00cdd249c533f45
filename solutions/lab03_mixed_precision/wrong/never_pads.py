# exercise: aligned_shapes
# told: leaving it as it is takes longer


def best_padding(shape, bits, *, rates):
    return list(shape)
