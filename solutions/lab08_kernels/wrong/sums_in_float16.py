# exercise: order_matters
# told: sums are rounded in half precision (float16), whatever the format is
def range_of_sums(values, fmt):
    """(smallest, largest) of the sums that any order gives."""

    def added(order):
        total = order[0]
        for value in order[1:]:
            total = rounded(total + value, "float16")
        return total

    sums = {added(order) for order in permutations(values)}
    return min(sums), max(sums)
