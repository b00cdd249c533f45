# exercise: self_times
# told: the self times are in microseconds
from functools import wraps


def _in_microseconds(exact):
    @wraps(exact)
    def self_times(rows):
        return {name: 1e6 * spent_s for name, spent_s in exact(rows).items()}

    return self_times


self_times = _in_microseconds(self_times)
