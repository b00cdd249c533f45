# exercise: pack_sequences
# told: the looks do not show that no earlier row had room


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
