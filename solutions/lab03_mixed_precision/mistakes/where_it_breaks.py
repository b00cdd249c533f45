# %% mistake="overflow_right_after_the_largest"
# told: your answer is rounded back to the largest number
_right_ends = where_it_breaks


def where_it_breaks(fmt):
    ends = _right_ends(fmt)
    return ends | {"overflows": ends["largest"] + 1}


# %% mistake="power_of_two_is_rounded"
# told: your answer is a power of two, which is never rounded
_right_ends = where_it_breaks


def where_it_breaks(fmt):
    return _right_ends(fmt) | {"rounded": 2 ** (fmt["mantissa_bits"] + 1)}


# %% mistake="smallest_number_flushes"
# told: your answer is the smallest number of the format, which does not become 0
_right_ends = where_it_breaks


def where_it_breaks(fmt):
    return _right_ends(fmt) | {
        "flushed": 2.0 ** (1 - fmt["bias"] - fmt["mantissa_bits"])
    }


# %% mistake="ties_at_the_end_go_up"
# told: at the end of the range, your code rounds a tie up
_right_ends = where_it_breaks


def where_it_breaks(fmt):
    ends = _right_ends(fmt)
    exponent = math.frexp(ends["largest"])[1] - 1
    return ends | {
        "overflows": ends["largest"] + 2.0 ** (exponent - fmt["mantissa_bits"] - 1)
    }
