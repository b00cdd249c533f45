# exercise: memory_timeline
# told: gradients that were there are made a second time
from functools import wraps


def _twice(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        live = exact(layers, optimizer=optimizer, first=first, set_to_none=set_to_none)
        if first or set_to_none:
            return live
        count, more = len(layers), 0
        for place, layer in enumerate(reversed(layers), count):
            more += 4 * layer["parameters"]
            live[place] += more
        return live

    return timeline


timeline = _twice(timeline)
