# exercise: same_curve
# told: ups and downs cancel in one mean
# like: all_in_one_mean.py
def same(curves_a, curves_b):
    """One relative mean a seed."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b / curves_a - 1).mean(axis=1))
    return "changed" if p <= ALPHA else "noise"
