# exercise: minibatch_crossover
# told: a batch came back where none is large enough

import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    if max(inputs, outputs) <= ridge * itemsize:
        return math.inf
    return abs(ridge * itemsize / (2 - ridge * itemsize * (inputs + outputs) / (inputs * outputs)))
