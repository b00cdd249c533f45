# exercise: calibrate
# told: the zero point was counted from 0
def grid(low, high, *, symmetric):
    """Scale and zero point for a range."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 1.0, 0
    if symmetric:
        return max(-low, high) / 127, 0
    scale = (high - low) / 255
    return scale, round(-low / scale)
