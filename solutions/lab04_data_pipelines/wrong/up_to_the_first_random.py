# exercise: decode_once
# told: work that could be done once is done in every epoch


def move_offline(chain):
    offline = []
    for place, transform in enumerate(chain):
        if transform["random"]:
            break
        offline.append(place)
    return offline
