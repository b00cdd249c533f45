# exercise: who_hangs
# told: nobody waits for that rank
from functools import wraps


def _anybody_is_awaited(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Does not ask who is in the group."""
        answer, rank = exact(groups, ranks)
        words = {"no sign": "lost", "ended": "ended early", "computes": "only slow"}
        if answer in words.values():
            for doing, word in words.items():
                for number, one in enumerate(ranks):
                    if one["doing"] == doing:
                        return word, number
        return answer, rank

    return who_hangs


who_hangs = _anybody_is_awaited(who_hangs)
