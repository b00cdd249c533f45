# exercise: minibatch_crossover
# told: elements were counted, not bytes
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    gain = 2 * inputs * outputs - ridge * (inputs + outputs)
    return ridge * inputs * outputs / gain if gain > 0 else math.inf
