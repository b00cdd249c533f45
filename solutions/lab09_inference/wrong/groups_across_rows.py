# exercise: two_of_four
# told: groups go on across rows
def mask(weight):
    """Groups of four in memory order."""
    groups = weight.abs().flatten().unflatten(0, (-1, 4))
    return (groups.argsort(dim=1, descending=True).argsort(dim=1) < 2).view(weight.shape)
