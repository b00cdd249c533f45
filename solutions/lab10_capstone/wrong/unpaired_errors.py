# exercise: same_curve
# told: seeds are not paired
# like: seeds_apart.py
def same(curves_a, curves_b):
    """Two standard errors of the seeds, at any point."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    gap = np.abs((curves_b - curves_a).mean(axis=0))
    return "changed" if np.any(gap > 2 * curves_a.std(axis=0) / np.sqrt(10)) else "noise"
