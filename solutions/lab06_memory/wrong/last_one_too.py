# exercise: best_segments
# told: the last segment is checkpointed too


def best_segments(layers, saved_per_layer):
    tried = []
    for segments in range(1, layers + 1):
        size = layers // segments
        tried.append((segments + saved_per_layer * (size + layers % segments), segments))
    held, segments = min(tried)
    return segments, held, layers
