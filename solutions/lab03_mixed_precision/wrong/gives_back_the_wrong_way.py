# exercise: accumulate_sum
# told: what is lost is not given back


def sum_low(values):
    total, lost = values[0], values[0] - values[0]
    for value in values[1:]:
        corrected = value + lost
        new = total + corrected
        lost = (new - total) - corrected
        total = new
    return total
