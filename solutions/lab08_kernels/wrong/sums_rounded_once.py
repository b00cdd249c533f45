# exercise: order_matters
# told: every addition is rounded: these are sums in 64 bits
from itertools import permutations


def range_of_sums(values, fmt):
    """Python adds, the end is rounded."""
    sums = {rounded(sum(order), fmt) for order in permutations(values)}
    return min(sums), max(sums)
