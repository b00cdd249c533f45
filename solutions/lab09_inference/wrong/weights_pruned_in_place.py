# exercise: two_of_four
# told: Your function modified its input
def mask(weight):
    """Which weights are kept."""
    groups = weight.abs_().unflatten(0, (-1, 4))
    ranks = groups.argsort(dim=1, descending=True).argsort(dim=1)
    return (ranks < 2).flatten(0, 1)
