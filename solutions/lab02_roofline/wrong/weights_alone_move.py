# exercise: minibatch_crossover
# told: only the weights were counted


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    return ridge * itemsize / 2
