# exercise: same_curve
# told: p is turned round
def sign_flip_p(differences):
    """The others."""
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = np.abs(patterns @ np.asarray(differences))
    seen = np.abs(np.sum(differences))
    return float(1 - np.mean(sums >= seen - TINY))
