# exercise: collate_pad
# told: the mask does not follow the lengths


def collate_pad(sequences, *, pad_id, multiple):
    width = -(-max(map(len, sequences)) // multiple) * multiple
    tokens = torch.tensor([[*[pad_id] * (width - len(s)), *s] for s in sequences])
    mask = torch.tensor([[False] * (width - len(s)) + [True] * len(s) for s in sequences])
    return tokens, mask
