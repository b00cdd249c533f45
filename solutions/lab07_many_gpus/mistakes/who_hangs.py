# %% mistake="absent_first"
# told: your answer misses calls that meet but do not match
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


# %% mistake="anybody_is_awaited"
# told: no rank waits for the rank that you named
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


# %% mistake="blames_the_many"
# told: your function blames a rank of the majority, but the odd one out is at fault
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


# %% mistake="blames_who_waits"
# told: the rank that you named is itself waiting; the other ranks wait for a different rank
from functools import wraps


def _blames_who_waits(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """The first one that waits."""
        answer, rank = exact(groups, ranks)
        if answer in ("lost", "ended early", "only slow"):
            group = next(
                one["calls"][-1]["group"] for one in ranks if one["doing"] == "waits"
            )
            return answer, next(
                r for r in groups[group] if ranks[r]["doing"] == "waits"
            )
        return answer, rank

    return who_hangs


who_hangs = _blames_who_waits(who_hangs)


# %% mistake="circles_everywhere"
# told: your answer names a circle, but the ranks of these two groups do not wait in a circle
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


# %% mistake="ended_is_lost"
# told: your answer misses that a rank has ended
from functools import wraps


def _ended_is_lost(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Whoever does not come is lost."""
        answer, rank = exact(groups, ranks)
        return ("lost" if answer == "ended early" else answer), rank

    return who_hangs


who_hangs = _ended_is_lost(who_hangs)


# %% mistake="groups_are_one"
# told: your answer names a mismatch, but in this case, calls that meet do not differ
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


# %% mistake="silence_is_slow"
# told: your answer misses that a rank gives no sign
from functools import wraps


def _silence_is_slow(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """No sign is taken for computing."""
        answer, rank = exact(groups, ranks)
        return ("only slow" if answer == "lost" else answer), rank

    return who_hangs


who_hangs = _silence_is_slow(who_hangs)


# %% mistake="sizes_are_calls"
# told: your answer misses that one rank makes the same call with a different size
from functools import wraps


def _sizes_are_calls(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Every mismatch is another call."""
        answer, rank = exact(groups, ranks)
        return ("other call" if answer == "other size" else answer), rank

    return who_hangs


who_hangs = _sizes_are_calls(who_hangs)


# %% mistake="sizes_first"
# told: your function overlooks that an earlier condition already holds
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


# %% mistake="slow_is_lost"
# told: your answer misses that a rank still computes
from functools import wraps


def _slow_is_lost(exact):
    @wraps(exact)
    def who_hangs(groups, ranks):
        """Gives up on a rank that computes."""
        answer, rank = exact(groups, ranks)
        return ("lost" if answer == "only slow" else answer), rank

    return who_hangs


who_hangs = _slow_is_lost(who_hangs)
