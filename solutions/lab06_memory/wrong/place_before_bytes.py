# exercise: memory_timeline
# told: the place of the peak came first, and its bytes second


def peak(live):
    return live.index(max(live)), max(live)
