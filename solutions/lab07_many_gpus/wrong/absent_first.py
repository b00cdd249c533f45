# exercise: who_hangs
# told: calls that have met already do not match
from functools import wraps


def _absent_first(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Looks for missing ranks first."""
        answer, rank = exact(groups, ranks)
        group = ranks[rank]["calls"][-1]["group"]
        missing = [r for r in groups[group] if ranks[r]["doing"] == "computes"]
        if answer in ("other call", "other size") and missing:
            return "only slow", rank
        return answer, rank

    return who_hangs


who_hangs = _absent_first(who_hangs)
