# exercise: accumulate_sum
# told: not every value enters the sum once
# like: cancels_what_it_does_not_add.py


def sum_low(values):
    left = math.fsum(float(value) for value in values)
    powers = [values[0]]
    while 2 * float(powers[-1]) <= left:
        powers.append(powers[-1] + powers[-1])
    total = values[0] - values[0]
    for power in reversed(powers):
        if float(power) <= left:
            total, left = total + power, left - float(power)
    return total
