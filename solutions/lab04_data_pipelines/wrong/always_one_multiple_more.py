# exercise: collate_pad
# told: the batch is padded further than it needs


def collate_pad(sequences, *, pad_id, multiple):
    width = (max(map(len, sequences)) // multiple + 1) * multiple
    tokens = torch.tensor([[*s, *[pad_id] * (width - len(s))] for s in sequences])
    mask = torch.tensor([[True] * len(s) + [False] * (width - len(s)) for s in sequences])
    return tokens, mask
