# exercise: minibatch_crossover
# told: the batch was rounded
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    gain = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
    return math.ceil(ridge * itemsize * inputs * outputs / gain) if gain > 0 else math.inf
