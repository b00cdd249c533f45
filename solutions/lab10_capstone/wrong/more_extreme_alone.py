# exercise: same_curve
# told: what was seen is not counted among the patterns
def sign_flip_p(differences):
    """Strictly more."""
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = np.abs(patterns @ np.asarray(differences))
    seen = np.abs(np.sum(differences))
    return float(np.mean(sums > seen + TINY))
