# exercise: accumulate_sum
# told: the partial sums still grow too large
# like: two_halves.py


def sum_low(values):
    return sum(sum(values[i : i + 32]) for i in range(0, len(values), 32))
