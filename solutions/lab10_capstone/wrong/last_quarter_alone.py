# exercise: same_curve
# told: only the end of the curves is looked at
def same(curves_a, curves_b):
    """The end."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a)[:, -4:].mean(axis=1))
    return "changed" if p <= ALPHA else "noise"
