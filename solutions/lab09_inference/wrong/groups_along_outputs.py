# exercise: two_of_four
# told: groups lie along the outputs
def mask(weight):
    """Two of four columns."""
    parts = []
    for part in weight.abs().split(4, dim=1):
        ranks = part.argsort(dim=1, descending=True).argsort(dim=1)
        parts.append(ranks < 2)
    return torch.cat(parts, dim=1)
