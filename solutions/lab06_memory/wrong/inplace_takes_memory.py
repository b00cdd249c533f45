# exercise: memory_timeline
# told: what is done in place takes memory of its own
from functools import wraps


def _of_its_own(exact):
    @wraps(exact)
    def timeline(layers, **options):
        return exact([{**layer, "inplace": False} for layer in layers], **options)

    return timeline


timeline = _of_its_own(timeline)
