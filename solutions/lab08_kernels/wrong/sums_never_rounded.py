# exercise: order_matters
# told: every addition is rounded: these are sums in 64 bits
# like: sums_rounded_once.py
from itertools import permutations


def range_of_sums(values, fmt):
    """Nothing is rounded."""
    sums = {sum(order) for order in permutations(values)}
    return min(sums), max(sums)
