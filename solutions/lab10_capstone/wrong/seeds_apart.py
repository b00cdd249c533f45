# exercise: same_curve
# told: seeds are not paired
def same(curves_a, curves_b):
    """Two samples."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    for a, b in zip(np.array_split(curves_a, 4, 1), np.array_split(curves_b, 4, 1), strict=True):
        a, b = a.mean(axis=1), b.mean(axis=1)
        apart = abs(a.mean() - b.mean())
        if apart > 2.5 * np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a)):
            return "changed"
    return "noise"
