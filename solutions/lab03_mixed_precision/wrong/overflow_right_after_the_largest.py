# exercise: where_it_breaks
# told: a value that is rounded back to the largest number was called an overflow


_right_ends = where_it_breaks


def where_it_breaks(fmt):
    ends = _right_ends(fmt)
    return ends | {"overflows": ends["largest"] + 1}
