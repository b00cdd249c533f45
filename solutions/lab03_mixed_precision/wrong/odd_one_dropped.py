# exercise: accumulate_sum
# told: part of the values never enter the sum


def sum_low(values):
    sums = list(values)
    while len(sums) > 1:
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=False)]
    return sums[0]
