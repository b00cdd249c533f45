# exercise: accumulate_sum
# told: the partial sums still grow too large


def sum_low(values):
    middle = len(values) // 2
    return sum(values[:middle]) + sum(values[middle:])
