# exercise: who_hangs
# told: an earlier question has a yes already
from functools import wraps


def _sizes_first(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Compares sizes before calls."""
        answer, rank = exact(groups, ranks)
        waiting = [one["calls"][-1] for one in ranks if one["doing"] == "waits"]
        mine = ranks[rank]["calls"][-1]
        same = [one["numel"] for one in waiting if one["group"] == mine["group"]]
        if answer == "other call" and len(set(same)) > 1:
            return "other size", rank
        return answer, rank

    return who_hangs


who_hangs = _sizes_first(who_hangs)
