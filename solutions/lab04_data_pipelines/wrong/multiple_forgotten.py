# exercise: collate_pad
# told: the width is no multiple of what was asked


def collate_pad(sequences, *, pad_id, multiple):
    width = max(map(len, sequences))
    tokens = torch.tensor([[*s, *[pad_id] * (width - len(s))] for s in sequences])
    mask = torch.tensor([[True] * len(s) + [False] * (width - len(s)) for s in sequences])
    return tokens, mask
