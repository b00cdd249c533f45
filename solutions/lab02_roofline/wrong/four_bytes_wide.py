# exercise: minibatch_crossover
# told: 4 bytes an element were assumed


def width_limit(*, ridge, itemsize):
    return 4 * ridge
