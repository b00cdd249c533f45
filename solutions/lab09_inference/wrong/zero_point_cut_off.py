# exercise: calibrate
# told: the zero point is cut off, and not rounded
def grid(low, high, *, symmetric):
    """Scale and zero point for a range."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 1.0, 0 if symmetric else -128
    if symmetric:
        return max(-low, high) / 127, 0
    scale = (high - low) / 255
    return scale, int(-128 - low / scale)
