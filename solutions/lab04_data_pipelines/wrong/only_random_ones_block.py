# exercise: decode_once
# told: a transform moved past one that has to stay


def move_offline(chain):
    swaps = ({"point", "move"}, {"point", "cut"}, {"whole", "move"})
    drawn = [(place, t["kind"]) for place, t in enumerate(chain) if t["random"]]
    return [
        place
        for place, t in enumerate(chain)
        if not t["random"] and all({t["kind"], kind} in swaps for before, kind in drawn if before < place)
    ]
