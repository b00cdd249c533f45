# %% mistake="adds_floats"
# told: your sum is not a number of the short format
def sum_low(values):
    return math.fsum(float(value) for value in values)


# %% mistake="builds_the_sum_of_floats"
# told: your sum does not contain every value exactly once
# like: cancels_what_it_does_not_add
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


# %% mistake="cancels_what_it_does_not_add"
# told: your sum does not contain every value exactly once
def sum_low(values):
    left = math.fsum(float(value) for value in values)
    powers = [values[0]]
    while 2 * float(powers[-1]) <= left:
        powers.append(powers[-1] + powers[-1])
    total = values[0] - values[0]
    for value in values:
        total = total + (value - value)
    for power in reversed(powers):
        if float(power) <= left:
            total, left = total + power, left - float(power)
    return total


# %% mistake="gives_back_the_wrong_way"
# told: your result uses differences of sums, but it is still too far off
def sum_low(values):
    total, lost = values[0], values[0] - values[0]
    for value in values[1:]:
        corrected = value + lost
        new = total + corrected
        lost = (new - total) - corrected
        total = new
    return total


# %% mistake="odd_one_dropped"
# told: some of the values never enter your sum
def sum_low(values):
    sums = list(values)
    while len(sums) > 1:
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=False)]
    return sums[0]


# %% mistake="one_after_another"
# told: your running sum grew until the added values were lost
def sum_low(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


# %% mistake="sums_of_thirty_two"
# told: your partial sums still grow too large
# like: two_halves
def sum_low(values):
    return sum(sum(values[i : i + 32]) for i in range(0, len(values), 32))


# %% mistake="two_halves"
# told: your partial sums still grow too large
def sum_low(values):
    middle = len(values) // 2
    return sum(values[:middle]) + sum(values[middle:])
