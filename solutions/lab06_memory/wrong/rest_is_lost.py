# exercise: best_segments
# told: the layers that are left over are in no segment


def best_segments(layers, saved_per_layer):
    tried = [(c - 1 + saved_per_layer * (layers // c), (c - 1) * (layers // c), c) for c in range(1, layers + 1)]
    held, again, segments = min(tried)
    return segments, held, again
