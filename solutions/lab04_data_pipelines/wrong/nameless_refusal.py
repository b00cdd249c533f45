# exercise: pack_sequences
# told: the error does not say which sequence is too long


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
