# exercise: decode_once
# told: another kind of answer is asked for


def move_offline(chain):
    return [transform for transform in chain if not transform["random"]]
