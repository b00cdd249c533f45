# exercise: merge_statistics
# told: old and new are weighed the wrong way round
from functools import wraps


def _turned(exact):
    @wraps(exact)
    def running_statistics(running, parts, *, momentum):
        return exact(running, parts, momentum=1 - momentum)

    return running_statistics


running_statistics = _turned(running_statistics)
