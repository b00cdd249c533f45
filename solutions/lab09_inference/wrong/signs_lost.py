# exercise: two_of_four
# told: the signs of the kept values are lost
def pack(weight):
    """Kept values, and their places in two bits each."""
    kept = mask(weight).T
    values = weight.abs().T[kept].view(len(kept), -1).T
    place = (kept.nonzero()[:, 1] % 4).view(len(kept), -1, 4)
    bits = (place << torch.tensor([0, 2, 4, 6])).sum(2)
    return values, bits.T.to(torch.uint8)
