# exercise: same_curve
# told: one point that differs is forgiven
def same(curves_a, curves_b):
    """Equal in the mean."""
    if np.mean(np.abs(curves_b / curves_a - 1)) <= ROUNDING:
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"
