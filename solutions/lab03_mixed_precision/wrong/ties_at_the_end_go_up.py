# exercise: where_it_breaks
# told: a tie at the end of the range was sent up


_right_ends = where_it_breaks


def where_it_breaks(fmt):
    ends = _right_ends(fmt)
    exponent = math.frexp(ends["largest"])[1] - 1
    return ends | {"overflows": ends["largest"] + 2.0 ** (exponent - fmt["mantissa_bits"] - 1)}
