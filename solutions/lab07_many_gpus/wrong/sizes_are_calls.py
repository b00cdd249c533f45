# exercise: who_hangs
# told: it is the same call with another size
from functools import wraps


def _sizes_are_calls(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Every mismatch is another call."""
        answer, rank = exact(groups, ranks)
        return ("other call" if answer == "other size" else answer), rank

    return who_hangs


who_hangs = _sizes_are_calls(who_hangs)
