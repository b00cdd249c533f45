# exercise: pack_sequences
# told: too many comparisons


def pack_sequences(lengths, tree):
    for index, length in enumerate(lengths):
        if length > tree.capacity:
            raise ValueError(f"sequence {index} is too long")
    rows = [[] for _ in lengths]
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        place = next(row for row in range(len(rows)) if tree.room(tree.leaves + row) >= lengths[index])
        tree.put(place, lengths[index])
        rows[place].append(index)
    return [row for row in rows if row]
