# exercise: order_matters
# told: values that are equal are added once each
def range_of_sums(values, fmt):
    """A set drops one of two equal values."""

    def added(order):
        total = order[0]
        for value in order[1:]:
            total = rounded(total + value, fmt)
        return total

    sums = {added(order) for order in permutations(set(values))}
    return min(sums), max(sums)
