# exercise: decode_once
# told: a random transform was done once and for all


def move_offline(chain):
    return list(range(len(chain)))
