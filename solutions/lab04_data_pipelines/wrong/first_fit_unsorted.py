# exercise: pack_sequences
# told: a long sequence came after a shorter one


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
