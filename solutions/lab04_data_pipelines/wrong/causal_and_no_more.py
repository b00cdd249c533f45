# exercise: pack_sequences
# told: a token looks into another sequence
# like: rows_leak.py
import torch


def packed_mask(lengths, capacity):
    return torch.ones(capacity, capacity, dtype=torch.bool).tril()
