# exercise: same_curve
# told: false alarms are too frequent
def same(curves_a, curves_b):
    """Each at 5 %."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if p <= 0.05 else "noise"
