# exercise: best_segments
# told: the square root of the layers is not always best


def best_segments(layers, saved_per_layer):
    segments = round(layers**0.5)
    size = layers // segments
    return segments, segments - 1 + saved_per_layer * (size + layers % segments), (segments - 1) * size
