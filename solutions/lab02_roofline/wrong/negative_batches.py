# exercise: minibatch_crossover
# told: a negative batch came back where none is large enough


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    below = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
    return ridge * itemsize * inputs * outputs / (below or 1)
