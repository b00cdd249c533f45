# exercise: order_matters
# told: the extremes are not the sums of sorted values
def range_of_sums(values, fmt):
    """Up and down."""

    def added(order):
        total = order[0]
        for value in order[1:]:
            total = rounded(total + value, fmt)
        return total

    sums = added(sorted(values)), added(sorted(values, reverse=True))
    return min(sums), max(sums)
