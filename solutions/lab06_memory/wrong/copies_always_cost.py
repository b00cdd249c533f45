# exercise: method_table
# told: copies beside the passes were charged in full
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return "-" if method == "offload" else speed, memory

    return effect


effect = _other(effect)
