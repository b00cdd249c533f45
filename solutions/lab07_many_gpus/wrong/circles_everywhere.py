# exercise: who_hangs
# told: ranks wait in two groups, and yet in no circle
from functools import wraps


def _circles_everywhere(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Two groups that wait are a circle."""
        answer, rank = exact(groups, ranks)
        waited = {one["calls"][-1]["group"] for one in ranks if one["doing"] == "waits"}
        if answer in ("lost", "ended early", "only slow") and len(waited) > 1:
            return "crossed groups", rank
        return answer, rank

    return who_hangs


who_hangs = _circles_everywhere(who_hangs)
