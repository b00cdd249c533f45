# %% mistake="a_byte_for_each_place"
# told: each of your bytes holds too few places
# %% replace
bits = (place << torch.tensor([0, 2, 4, 6])).sum(2)
return values, bits.T.to(torch.uint8)
# %% by
return values, place.flatten(1).T.to(torch.uint8)


# %% mistake="faster_for_less_time"
# told: your function treats 30 % faster as 30 % less time
def sparse_share(faster, *, peak):
    """The share of the time before."""
    return (faster - 1) / (1 - 1 / peak)


# %% mistake="groups_across_rows"
# told: your code forms groups across rows
def mask(weight):
    """Groups of four in memory order."""
    groups = weight.abs().flatten().unflatten(0, (-1, 4))
    return (groups.argsort(dim=1, descending=True).argsort(dim=1) < 2).view(
        weight.shape
    )


# %% mistake="groups_along_outputs"
# told: your code forms groups along the outputs
def mask(weight):
    """Two of four columns."""
    parts = []
    for part in weight.abs().split(4, dim=1):
        ranks = part.argsort(dim=1, descending=True).argsort(dim=1)
        parts.append(ranks < 2)
    return torch.cat(parts, dim=1)


# %% mistake="groups_change_places"
# told: in your bytes, the two groups are exchanged
# %% replace
bits = (place << torch.tensor([0, 2, 4, 6])).sum(2)
# %% by
bits = (place << torch.tensor([4, 6, 0, 2])).sum(2)


# %% mistake="half_of_each_column"
# told: your mask keeps the largest half of each column
def mask(weight):
    """Which weights are kept."""
    groups = weight.abs().unflatten(0, (1, -1))
    ranks = groups.argsort(dim=1, descending=True).argsort(dim=1)
    return (ranks < len(weight) // 2).flatten(0, 1)


# %% mistake="half_of_the_tensor"
# told: your mask keeps half of all weights, regardless of the groups
def mask(weight):
    """All above the median."""
    return weight.abs() > weight.abs().median()


# %% mistake="largest_first"
# told: in your answer, the two values of a group are in the wrong order
def pack(weight):
    """The larger one first."""
    groups = weight.unflatten(0, (-1, 4))
    order = groups.abs().argsort(dim=1, descending=True)[:, :2]
    values = groups.gather(1, order).flatten(0, 1)
    place = order.flatten(0, 1).unflatten(0, (-1, 4))
    bits = (place << torch.tensor([0, 2, 4, 6]).view(1, 4, 1)).sum(1)
    return values, bits.to(torch.uint8)


# %% mistake="mask_of_what_goes"
# told: your mask is inverted
# %% replace
return (ranks < 2).flatten(0, 1)
# %% by
return (ranks >= 2).flatten(0, 1)


# %% mistake="places_as_int64"
# told: your places do not take one byte for each entry
# %% replace
return values, bits.T.to(torch.uint8)
# %% by
return values, bits.T


# %% mistake="places_from_the_top"
# told: your code fills a byte with places from its highest bits
# %% replace
bits = (place << torch.tensor([0, 2, 4, 6])).sum(2)
# %% by
bits = (place << torch.tensor([6, 4, 2, 0])).sum(2)


# %% mistake="product_of_the_first_group"
# told: your product from packed weights is wrong
# %% replace
group = torch.arange(len(values)).view(-1, 1) // 2
return (x[:, 4 * group + place] * values).sum(1)
# %% by
return (x[:, place] * values).sum(1)


# %% mistake="saved_for_share"
# told: your function returns the time saved as the share
def sparse_share(faster, *, peak):
    """The share of the time before."""
    return 1 - 1 / faster


# %% mistake="share_in_proportion"
# told: your function treats the speed-up as proportional to the share
def sparse_share(faster, *, peak):
    """The share of the time before."""
    return (faster - 1) / (peak - 1)


# %% mistake="signs_count"
# told: your mask keeps the largest signed values, not the largest magnitudes
# %% replace
groups = weight.abs().unflatten(0, (-1, 4))
# %% by
groups = weight.unflatten(0, (-1, 4))


# %% mistake="signs_lost"
# told: your code loses the signs of the kept values
# %% replace
values = weight.T[kept].view(len(kept), -1).T
# %% by
values = weight.abs().T[kept].view(len(kept), -1).T


# %% mistake="ties_keep_three"
# told: your mask does not keep exactly two weights in groups with equal magnitudes
def mask(weight):
    """Which weights are kept."""
    groups = weight.abs().unflatten(0, (-1, 4))
    least = groups.sort(dim=1, descending=True).values[:, 1:2]
    return (groups >= least).flatten(0, 1)


# %% mistake="weights_pruned_in_place"
# told: Your function modified its input
# %% replace
groups = weight.abs().unflatten(0, (-1, 4))
# %% by
groups = weight.abs_().unflatten(0, (-1, 4))
