# exercise: same_curve
# told: false alarms are too frequent
# like: four_looks_for_one.py
def same(curves_a, curves_b):
    """Takes ALPHA for each of four looks."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if p <= ALPHA else "noise"
