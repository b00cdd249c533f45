# %% mistake="always_one_multiple_more"
# told: your code pads the batch further than it has to
def collate_pad(sequences, *, pad_id, multiple):
    width = (max(map(len, sequences)) // multiple + 1) * multiple
    tokens = torch.tensor([[*s, *[pad_id] * (width - len(s))] for s in sequences])
    mask = torch.tensor(
        [[True] * len(s) + [False] * (width - len(s)) for s in sequences]
    )
    return tokens, mask


# %% mistake="at_least_one_wide"
# told: a batch without any tokens must have no columns
_right_pad = collate_pad


def collate_pad(sequences, *, pad_id, multiple):
    if any(sequences):
        return _right_pad(sequences, pad_id=pad_id, multiple=multiple)
    tokens = torch.full((len(sequences), multiple), pad_id, dtype=torch.long)
    return tokens, torch.zeros_like(tokens, dtype=torch.bool)


# %% mistake="mask_from_the_pad_id"
# told: your mask does not follow the lengths
# like: padded_in_front
def collate_pad(sequences, *, pad_id, multiple):
    width = -(-max(map(len, sequences)) // multiple) * multiple
    tokens = torch.tensor([[*s, *[pad_id] * (width - len(s))] for s in sequences])
    return tokens, tokens != pad_id


# %% mistake="multiple_forgotten"
# told: your code does not round the width up to the multiple
def collate_pad(sequences, *, pad_id, multiple):
    width = max(map(len, sequences))
    tokens = torch.tensor([[*s, *[pad_id] * (width - len(s))] for s in sequences])
    mask = torch.tensor(
        [[True] * len(s) + [False] * (width - len(s)) for s in sequences]
    )
    return tokens, mask


# %% mistake="padded_in_front"
# told: your mask does not follow the lengths
def collate_pad(sequences, *, pad_id, multiple):
    width = -(-max(map(len, sequences)) // multiple) * multiple
    tokens = torch.tensor([[*[pad_id] * (width - len(s)), *s] for s in sequences])
    mask = torch.tensor(
        [[False] * (width - len(s)) + [True] * len(s) for s in sequences]
    )
    return tokens, mask
