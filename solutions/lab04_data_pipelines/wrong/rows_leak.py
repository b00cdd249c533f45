# exercise: pack_sequences
# told: a token looks into another sequence


def packed_mask(lengths, capacity):
    mask = torch.ones(capacity, capacity, dtype=torch.bool).tril()
    mask[sum(lengths) :] = False
    return mask
