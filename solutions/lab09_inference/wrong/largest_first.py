# exercise: two_of_four
# told: the two of a group are in another order
def pack(weight):
    """The larger one first."""
    groups = weight.unflatten(0, (-1, 4))
    order = groups.abs().argsort(dim=1, descending=True)[:, :2]
    values = groups.gather(1, order).flatten(0, 1)
    place = order.flatten(0, 1).unflatten(0, (-1, 4))
    bits = (place << torch.tensor([0, 2, 4, 6]).view(1, 4, 1)).sum(1)
    return values, bits.to(torch.uint8)
