# exercise: same_curve
# told: another tolerance than ROUNDING is taken
def same(curves_a, curves_b):
    """numpy's own tolerance."""
    if np.allclose(curves_a, curves_b):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"
