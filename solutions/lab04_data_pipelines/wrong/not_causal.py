# exercise: pack_sequences
# told: a token looks into the future


def packed_mask(lengths, capacity):
    mask, start = torch.zeros(capacity, capacity, dtype=torch.bool), 0
    for length in lengths:
        mask[start : start + length, start : start + length] = True
        start += length
    return mask
