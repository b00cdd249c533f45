# exercise: same_curve
# told: ups and downs cancel in one mean
def same(curves_a, curves_b):
    """One mean."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a).mean(axis=1))
    return "changed" if p <= ALPHA else "noise"
