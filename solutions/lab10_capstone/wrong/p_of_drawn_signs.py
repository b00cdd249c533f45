# exercise: same_curve
# told: p is not a share of all 2^n patterns
def sign_flip_p(differences):
    """200 patterns, drawn."""
    drawn = np.random.default_rng(0).choice((1, -1), size=(200, len(differences)))
    sums = np.abs(drawn @ np.asarray(differences))
    return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
