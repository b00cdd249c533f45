# exercise: same_curve
# told: p is a share, and not a number of patterns
def sign_flip_p(differences):
    """A count."""
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = np.abs(patterns @ np.asarray(differences))
    seen = np.abs(np.sum(differences))
    return float(np.sum(sums >= seen - TINY))
