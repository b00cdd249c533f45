# exercise: same_curve
# told: small changes are measured by a yardstick that does not fit them
def same(curves_a, curves_b):
    """A mean over seeds, and a large tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs((curves_b / curves_a - 1).mean(axis=0)).max()
    return "changed" if far > 0.02 else "noise"
