# exercise: memory_timeline
# told: the peak is not the largest of them


def peak(live):
    place = len(live) // 2 - 2
    return live[place], place
