# exercise: order_matters
# told: one order has one sum
def range_of_sums(values, fmt):
    """One order."""

    def added(order):
        total = order[0]
        for value in order[1:]:
            total = rounded(total + value, fmt)
        return total

    return added(values), added(values)
