# exercise: decode_once
# told: a window and a change of places were exchanged


def move_offline(chain):
    swaps = ({"point", "move"}, {"point", "cut"}, {"whole", "move"}, {"move", "cut"})
    offline, staying = [], []
    for place, transform in enumerate(chain):
        kind = transform["kind"]
        if transform["random"] or any({kind, other} not in swaps for other in staying):
            staying.append(kind)
        else:
            offline.append(place)
    return offline
