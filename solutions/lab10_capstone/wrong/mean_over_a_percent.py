# exercise: same_curve
# told: noise is measured by a yardstick that does not fit it
# like: within_five_percent.py
def same(curves_a, curves_b):
    """A mean over seeds, and a tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs((curves_b / curves_a - 1).mean(axis=0)).max()
    return "changed" if far > 0.005 else "noise"
