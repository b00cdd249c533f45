# exercise: collate_pad
# told: the mask does not follow the lengths
# like: padded_in_front.py


def collate_pad(sequences, *, pad_id, multiple):
    width = -(-max(map(len, sequences)) // multiple) * multiple
    tokens = torch.tensor([[*s, *[pad_id] * (width - len(s))] for s in sequences])
    return tokens, tokens != pad_id
