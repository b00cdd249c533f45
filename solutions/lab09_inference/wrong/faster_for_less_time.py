# exercise: two_of_four
# told: 30 % faster was taken for 30 % less time
def sparse_share(faster, *, peak):
    """The share of the time before."""
    return (faster - 1) / (1 - 1 / peak)
