# exercise: same_curve
# told: sums that are equal but for rounding are told apart
def sign_flip_p(differences):
    """At least as far, to the last digit."""
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = np.abs(patterns @ np.asarray(differences))
    return float(np.mean(sums >= np.abs(np.sum(differences))))
