# exercise: who_hangs
# told: calls of different groups never meet
from functools import wraps


def _groups_are_one(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Compares the calls of all that wait."""
        answer, rank = exact(groups, ranks)
        calls = {one["calls"][-1]["call"] for one in ranks if one["doing"] == "waits"}
        if answer not in ("other call", "other size") and len(calls) > 1:
            return "other call", rank
        if answer == "crossed groups":
            return "other size", rank
        return answer, rank

    return who_hangs


who_hangs = _groups_are_one(who_hangs)
