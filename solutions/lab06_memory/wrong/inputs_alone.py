# exercise: best_segments
# told: the segment that runs again is not counted


def best_segments(layers, saved_per_layer):
    segments = max(2, round(layers**0.5))
    return segments, segments - 1, (segments - 1) * (layers // segments)
