# exercise: where_it_breaks
# told: the smallest number of the format was taken for one that flushes


_right_ends = where_it_breaks


def where_it_breaks(fmt):
    return _right_ends(fmt) | {"flushed": 2.0 ** (1 - fmt["bias"] - fmt["mantissa_bits"])}
