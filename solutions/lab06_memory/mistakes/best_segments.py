# %% mistake="all_run_again"
# told: your code counts the last segment as running again
from functools import wraps


def _whole(exact):
    @wraps(exact)
    def best_segments(layers, saved_per_layer):
        segments, held, again = exact(layers, saved_per_layer)
        return segments, held, layers if segments > 1 else 0

    return best_segments


best_segments = _whole(best_segments)


# %% mistake="inputs_alone"
# told: your code does not count the segment that runs again
def best_segments(layers, saved_per_layer):
    segments = max(2, round(layers**0.5))
    return segments, segments - 1, (segments - 1) * (layers // segments)


# %% mistake="last_one_too"
# told: your code counts the last segment as checkpointed too
def best_segments(layers, saved_per_layer):
    tried = []
    for segments in range(1, layers + 1):
        size = layers // segments
        tried.append(
            (segments + saved_per_layer * (size + layers % segments), segments)
        )
    held, segments = min(tried)
    return segments, held, layers


# %% mistake="more_segments_than_needed"
# told: your choice takes more time than necessary for this number of tensors
def best_segments(layers, saved_per_layer):
    tried = []
    for segments in range(1, layers + 1):
        size = layers // segments
        tried.append(
            (
                segments - 1 + saved_per_layer * (size + layers % segments),
                -segments,
                size * (segments - 1),
            )
        )
    held, segments, again = min(tried)
    return -segments, held, again


# %% mistake="rest_is_lost"
# told: your code leaves the remaining layers out of every segment
def best_segments(layers, saved_per_layer):
    tried = [
        (c - 1 + saved_per_layer * (layers // c), (c - 1) * (layers // c), c)
        for c in range(1, layers + 1)
    ]
    held, again, segments = min(tried)
    return segments, held, again


# %% mistake="root_of_the_layers"
# told: your code always uses about the square root of the layers, which is not always best
def best_segments(layers, saved_per_layer):
    segments = round(layers**0.5)
    size = layers // segments
    return (
        segments,
        segments - 1 + saved_per_layer * (size + layers % segments),
        (segments - 1) * size,
    )
