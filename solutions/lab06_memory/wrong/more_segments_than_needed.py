# exercise: best_segments
# told: as few tensors can be had for less time


def best_segments(layers, saved_per_layer):
    tried = []
    for segments in range(1, layers + 1):
        size = layers // segments
        tried.append((segments - 1 + saved_per_layer * (size + layers % segments), -segments, size * (segments - 1)))
    held, segments, again = min(tried)
    return -segments, held, again
