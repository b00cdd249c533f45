# exercise: same_curve
# told: every noise is taken for a change
def same(curves_a, curves_b):
    """Not equal is changed."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    return "changed"
