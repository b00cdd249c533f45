# exercise: two_of_four
# told: the two groups of a byte have changed places
def pack(weight):
    """Kept values, and their places in two bits each."""
    kept = mask(weight).T
    values = weight.T[kept].view(len(kept), -1).T
    place = (kept.nonzero()[:, 1] % 4).view(len(kept), -1, 4)
    bits = (place << torch.tensor([4, 6, 0, 2])).sum(2)
    return values, bits.T.to(torch.uint8)
