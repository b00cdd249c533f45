# exercise: minibatch_crossover
# told: a multiply-add was counted as one operation
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    gain = inputs * outputs - ridge * itemsize * (inputs + outputs)
    return ridge * itemsize * inputs * outputs / gain if gain > 0 else math.inf
