# exercise: order_matters
# told: sums are rounded in single precision (float32), whatever the format is
from itertools import permutations


def range_of_sums(values, fmt):
    """Always float32."""

    def added(order):
        total = order[0]
        for value in order[1:]:
            total = rounded(total + value, "float32")
        return total

    sums = {added(order) for order in permutations(values)}
    return min(sums), max(sums)
