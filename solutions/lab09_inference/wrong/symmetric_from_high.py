# exercise: calibrate
# told: the lower end of a symmetric range counts as well
def grid(low, high, *, symmetric):
    """Scale and zero point for a range."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 1.0, 0 if symmetric else -128
    if symmetric:
        return (high or -low) / 127, 0
    scale = (high - low) / 255
    return scale, round(-128 - low / scale)
