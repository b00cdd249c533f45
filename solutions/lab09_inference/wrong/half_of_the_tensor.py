# exercise: two_of_four
# told: the largest half of the tensor is kept
def mask(weight):
    """All above the median."""
    return weight.abs() > weight.abs().median()
