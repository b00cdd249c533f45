# exercise: memory_timeline
# told: gradients are there before a backward pass has made them
from functools import wraps


def _always(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        parameters = 4 * sum(layer["parameters"] for layer in layers)
        state = {"sgd": 0, "momentum": 1, "adam": 2}[optimizer] * parameters if first else 0
        live = exact(layers, optimizer=optimizer, first=False, set_to_none=False)
        moments = [value - state for value in live[:-2]] + live[-2:]
        return [*moments[:-1], moments[-1] - parameters] if set_to_none else moments

    return timeline


timeline = _always(timeline)
