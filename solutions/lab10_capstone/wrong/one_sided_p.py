# exercise: same_curve
# told: one direction alone is counted
def sign_flip_p(differences):
    """One side."""
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = patterns @ np.asarray(differences)
    seen = np.abs(np.sum(differences))
    return float(np.mean(sums >= seen - TINY))
