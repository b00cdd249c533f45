# %% mistake="along_the_rows"
# told: your code looks at the tree too often
def pack_sequences(lengths, tree):
    for index, length in enumerate(lengths):
        if length > tree.capacity:
            raise ValueError(f"sequence {index} is too long")
    rows = [[] for _ in lengths]
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        place = next(
            row
            for row in range(len(rows))
            if tree.room(tree.leaves + row) >= lengths[index]
        )
        tree.put(place, lengths[index])
        rows[place].append(index)
    return [row for row in rows if row]


# %% mistake="causal_and_no_more"
# told: in your mask, a token looks into another sequence
# like: rows_leak
import torch


def packed_mask(lengths, capacity):
    return torch.ones(capacity, capacity, dtype=torch.bool).tril()


# %% mistake="first_fit_unsorted"
# told: your code put a long sequence after a shorter one
def pack_sequences(lengths, tree):
    for index, length in enumerate(lengths):
        if length > tree.capacity:
            raise ValueError(f"sequence {index} is too long")
    rows = {}
    for index, length in enumerate(lengths):
        node = 1
        while node < tree.leaves:
            node = 2 * node if tree.room(2 * node) >= length else 2 * node + 1
        tree.put(node - tree.leaves, length)
        rows.setdefault(node - tree.leaves, []).append(index)
    return list(rows.values())


# %% mistake="looks_are_left_out"
# told: your looks do not prove that no earlier row had room
def pack_sequences(lengths, tree):
    for index, length in enumerate(lengths):
        if length > tree.capacity:
            raise ValueError(f"sequence {index} is too long")
    rows, rooms = [[] for _ in lengths], [tree.capacity] * len(lengths)
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        place = next(row for row, room in enumerate(rooms) if room >= lengths[index])
        tree.put(place, lengths[index])
        rooms[place] -= lengths[index]
        rows[place].append(index)
    return [row for row in rows if row]


# %% mistake="nameless_refusal"
# told: your error does not say which sequence is too long
def pack_sequences(lengths, tree):
    if max(lengths) > tree.capacity:
        raise ValueError("a sequence does not fit")
    rows = {}
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        node = 1
        while node < tree.leaves:
            node = 2 * node if tree.room(2 * node) >= lengths[index] else 2 * node + 1
        tree.put(node - tree.leaves, lengths[index])
        rows.setdefault(node - tree.leaves, []).append(index)
    return list(rows.values())


# %% mistake="not_causal"
# told: in your mask, a token looks into the future
def packed_mask(lengths, capacity):
    mask, start = torch.zeros(capacity, capacity, dtype=torch.bool), 0
    for length in lengths:
        mask[start : start + length, start : start + length] = True
        start += length
    return mask


# %% mistake="rows_leak"
# told: in your mask, a token looks into another sequence
def packed_mask(lengths, capacity):
    mask = torch.ones(capacity, capacity, dtype=torch.bool).tril()
    mask[sum(lengths) :] = False
    return mask
