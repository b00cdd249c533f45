# exercise: order_matters
# told: two orders are not all orders
def range_of_sums(values, fmt):
    """Forwards and backwards."""

    def added(order):
        total = order[0]
        for value in order[1:]:
            total = rounded(total + value, fmt)
        return total

    sums = added(values), added(values[::-1])
    return min(sums), max(sums)
