# exercise: who_hangs
# told: the odd one out is at fault, and not the many
from functools import wraps


def _blames_the_many(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """A rank of the majority."""
        answer, rank = exact(groups, ranks)
        if answer in ("other call", "other size"):
            mine = ranks[rank]["calls"][-1]["group"]
            waiting = [r for r in groups[mine] if ranks[r]["doing"] == "waits"]
            return answer, next(r for r in waiting if r != rank)
        return answer, rank

    return who_hangs


who_hangs = _blames_the_many(who_hangs)
