# exercise: who_hangs
# told: a rank that has ended will not call any more
from functools import wraps


def _ended_is_lost(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Whoever does not come is lost."""
        answer, rank = exact(groups, ranks)
        return ("lost" if answer == "ended early" else answer), rank

    return who_hangs


who_hangs = _ended_is_lost(who_hangs)
