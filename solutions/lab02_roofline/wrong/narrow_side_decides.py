# exercise: minibatch_crossover
# told: there is a batch that reaches the ridge

import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize, rightly=batch_at_ridge):  # noqa: F821
    narrow = min(inputs, outputs) <= ridge * itemsize
    return math.inf if narrow else rightly(inputs, outputs, ridge=ridge, itemsize=itemsize)
