# exercise: two_of_four
# told: where magnitudes are equal not two are kept
def mask(weight):
    """Which weights are kept."""
    groups = weight.abs().unflatten(0, (-1, 4))
    least = groups.sort(dim=1, descending=True).values[:, 1:2]
    return (groups >= least).flatten(0, 1)
