# exercise: two_of_four
# told: the largest half of each column is kept
def mask(weight):
    """Which weights are kept."""
    groups = weight.abs().unflatten(0, (1, -1))
    ranks = groups.argsort(dim=1, descending=True).argsort(dim=1)
    return (ranks < len(weight) // 2).flatten(0, 1)
