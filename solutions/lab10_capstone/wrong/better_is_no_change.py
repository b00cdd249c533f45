# exercise: same_curve
# told: changes for the better are missed
def same(curves_a, curves_b):
    """Only worse."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    worse = max(part.mean(axis=1).min() for part in parts)
    return "changed" if worse > 0 else "noise"
