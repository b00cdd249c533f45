# exercise: bytes_per_parameter
# told: a copy that comes and goes was counted as resident


_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    resident, peak = _right_bytes(recipe)
    return peak, peak
