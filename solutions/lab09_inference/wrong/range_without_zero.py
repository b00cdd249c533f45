# exercise: calibrate
# told: zero is no number of the grid: the range does not reach it
def grid(low, high, *, symmetric):
    """Scale and zero point for a range."""
    if low == high:
        return 1.0, 0 if symmetric else -128
    if symmetric:
        return max(-low, high) / 127, 0
    scale = (high - low) / 255
    return scale, round(-128 - low / scale)
