# exercise: order_matters
# told: sums are not rounded to the format
from itertools import permutations


def range_of_sums(values, fmt):
    """Nothing is rounded."""
    sums = {sum(order) for order in permutations(values)}
    return min(sums), max(sums)
