# exercise: memory_timeline
# told: zero_grad was taken for the other kind
from functools import wraps


def _kept(exact):
    @wraps(exact)
    def timeline(layers, **options):
        live = exact(layers, **options)
        return [*live[:-1], live[-2]]

    return timeline


timeline = _kept(timeline)
