# exercise: memory_timeline
# told: activations outlive their backward pass
from functools import wraps


def _stay(exact):
    @wraps(exact)
    def timeline(layers, **options):
        live, more = exact(layers, **options), 0
        for place, layer in enumerate(reversed(layers), len(layers)):
            more += 0 if layer["inplace"] else layer["activation_bytes"]
            live[place] += more
        return live

    return timeline


timeline = _stay(timeline)
