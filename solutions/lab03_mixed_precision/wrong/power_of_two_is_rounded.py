# exercise: where_it_breaks
# told: a power of two is never rounded


_right_ends = where_it_breaks


def where_it_breaks(fmt):
    return _right_ends(fmt) | {"rounded": 2 ** (fmt["mantissa_bits"] + 1)}
