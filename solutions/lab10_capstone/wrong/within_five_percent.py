# exercise: same_curve
# told: noise is measured by a yardstick that does not fit it
def same(curves_a, curves_b):
    """A tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs(curves_b / curves_a - 1).max()
    return "changed" if far > 0.03 else "noise"
