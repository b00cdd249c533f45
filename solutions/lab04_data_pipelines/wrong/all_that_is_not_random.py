# exercise: decode_once
# told: a transform moved past a random one that it does not commute with


def move_offline(chain):
    return [place for place, transform in enumerate(chain) if not transform["random"]]
