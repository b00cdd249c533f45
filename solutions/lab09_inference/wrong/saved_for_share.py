# exercise: two_of_four
# told: the time that was saved was taken for the share
def sparse_share(faster, *, peak):
    """The share of the time before."""
    return 1 - 1 / faster
