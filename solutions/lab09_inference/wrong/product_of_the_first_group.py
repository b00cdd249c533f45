# exercise: two_of_four
# told: the product from packed weights is another one
def sparse_product(x, values, places):
    """x times the pruned weight."""
    shifts = torch.tensor([0, 2, 4, 6]).view(1, 4, 1)
    place = ((places.int().unsqueeze(1) >> shifts) & 3).flatten(0, 1).long()
    return (x[:, place] * values).sum(1)
