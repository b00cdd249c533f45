# exercise: accumulate_sum
# told: the running sum grew until it swallowed what was added


def sum_low(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
