# exercise: place_checkpoints
# told: layers run again where everything fits
from functools import wraps


def _never_all(exact):
    @wraps(exact)
    def place(layers, budget_bytes):
        return exact(layers, budget_bytes) or [(0, 1)]

    return place


place = _never_all(place)
