# exercise: same_or_not
# told: clipping each micro-batch was taken for harmless
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        return exact({**job, "clip": ""})

    return what_differs


what_differs = _other(what_differs)
