# exercise: memory_timeline
# told: the optimizer's state is there before its first step
from functools import wraps


def _early(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        count = sum(layer["parameters"] for layer in layers)
        state = 4 * count * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
        live = exact(layers, optimizer=optimizer, first=first, set_to_none=set_to_none)
        return [value + state for value in live[:-2]] + live[-2:] if first else live

    return timeline


timeline = _early(timeline)
