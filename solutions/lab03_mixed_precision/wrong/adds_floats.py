# exercise: accumulate_sum
# told: the sum left the short format


def sum_low(values):
    return math.fsum(float(value) for value in values)
