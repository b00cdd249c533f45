# exercise: two_of_four
# told: speed-ups do not add up in proportion to shares
def sparse_share(faster, *, peak):
    """The share of the time before."""
    return (faster - 1) / (peak - 1)
