# exercise: two_of_four
# told: places do not fill their bytes
def pack(weight):
    """Kept values, and their places in two bits each."""
    kept = mask(weight).T
    values = weight.T[kept].view(len(kept), -1).T
    place = (kept.nonzero()[:, 1] % 4).view(len(kept), -1, 4)
    return values, place.flatten(1).T.to(torch.uint8)
