"""who_hangs: what all answers that are not right have in common, and its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from edl_labs.errors import Wrong

ANSWERS = ("other call", "other size", "lost", "ended early", "only slow", "crossed groups")
MISMATCHES = {"other call": "call", "other size": "numel"}
ABSENT = {"lost": "no sign", "ended early": "ended", "only slow": "computes"}
# What was overlooked where an answer of this kind was called another.
WORDS = {
    "other call": (
        "your answer misses that one rank makes a different call",
        "compare the calls before you compare their sizes",
    ),
    "other size": (
        "your answer misses that one rank makes the same call with a different size",
        "which of the calls that meet have different sizes?",
    ),
    "lost": (
        "your answer misses that a rank gives no sign",
        "call this rank lost: its process is gone, so it will not make its call",
    ),
    "ended early": (
        "your answer misses that a rank has ended",
        "a rank that has ended makes no more calls: it is neither lost nor slow",
    ),
    "only slow": (
        "your answer misses that a rank still computes",
        "do not give up on this rank: it will still make its call",
    ),
    "crossed groups": (
        "your answer misses that ranks wait for each other in two groups",
        "where do the missing ranks wait?",
    ),
}
_MOST_OF_ALL = 0.8  # a slip that hides the right call from one question leaves a few answers to others
_LEAST_PLACES = 2  # one wrong rank may be the right one's place in its group by luck
_REST = "in this case and in all other wrong cases"

Triple = tuple[Any, Any, Any]  # a case, the student's answer and the right one


def in_common(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The sentence that fits all answers that are not right; None where none does."""
    wrong = [one for one in zip(cases, got, want, strict=True) if list(one[1]) != list(one[2])]
    if not wrong or not all(mine[0] in ANSWERS and mine[1] in range(len(case["ranks"])) for case, mine, _ in wrong):
        return None
    counts = [sum(fits(*one) for one in wrong) for fits, *_ in _SLIPS]
    if counts[0] < _LEAST_PLACES:
        counts[0] = 0
    most = max(counts)
    if most >= _MOST_OF_ALL * len(wrong):
        _, what, why, then = _SLIPS[counts.index(most)]
        came = why.format(mine=wrong[0][1][0], right=wrong[0][2][0])
        where = _REST if most == len(wrong) else f"in {most} of the {len(wrong)} wrong cases"
        return Wrong(what, why=f"{came}, {where}", next=then)
    called = {(right[0], mine[0]) for _, mine, right in wrong}
    if len(called) == 1 and len(wrong) == sum(right[0] == wrong[0][2][0] for right in want):
        ((word, instead),) = called
        what, then = WORDS[word]
        return Wrong(
            what,
            why=f"your function returned {instead!r} whenever {word!r} is right; all other answers are right",
            next=then,
        )
    return None


def _does_so(case: Any, mine: Any) -> bool:
    """Whether the rank does what the answer says, if that is about a missing rank, and is waited for."""
    waited = [one["calls"][-1] for one in case["ranks"] if one["doing"] == "waits"]
    is_member = any(mine[1] in case["groups"][call["group"]] for call in waited)
    return is_member and case["ranks"][mine[1]]["doing"] == ABSENT.get(mine[0])


def _place_in_a_group(case: Any, mine: Any, right: Any) -> bool:
    """The right answer, with the rank's place in a group in which ranks wait for its number."""
    waited = [one["calls"][-1]["group"] for one in case["ranks"] if one["doing"] == "waits"]
    members = [case["groups"][name] for name in waited]
    places = [one.index(right[1]) for one in members if right[1] in one]
    return mine[0] == right[0] and mine[1] != right[1] and mine[1] in places


def _asked_later(case: Any, mine: Any, right: Any) -> bool:
    late = ANSWERS.index(mine[0]) > ANSWERS.index(right[0])
    return late and (_does_so(case, mine) or (mine[0] in MISMATCHES and mine[1] == right[1]))


def _one_of_the_many(case: Any, mine: Any, right: Any) -> bool:
    """A mismatch, of which a rank was named that waits in the same call as the odd one, and is not odd."""
    states = [case["ranks"][one[1]] for one in (mine, right)]
    if mine[0] != right[0] or mine[0] not in MISMATCHES or [one["doing"] for one in states] != ["waits"] * 2:
        return False
    calls = [one["calls"][-1] for one in states]
    part = MISMATCHES[mine[0]]
    return all(calls[0][one] == calls[1][one] for one in ("group", "number")) and calls[0][part] != calls[1][part]


def _one_that_waits(case: Any, mine: Any, right: Any) -> bool:
    return mine[0] == right[0] and mine[0] in ABSENT and case["ranks"][mine[1]]["doing"] == "waits"


def _crossed_by_one_alone(case: Any, mine: Any, right: Any) -> bool:
    """A circle, and a rank that is in one of its two groups alone, or waits in neither."""
    if not mine[0] == right[0] == "crossed groups":
        return False
    waited = {one["calls"][-1]["group"] for one in case["ranks"] if one["doing"] == "waits"}
    return not all(mine[1] in case["groups"][name] for name in waited)


def _waits_with_the_odd_one(case: Any, mine: Any, right: Any) -> bool:
    """A circle, and a rank that waits in the same call as the one at fault."""
    if not mine[0] == right[0] == "crossed groups":
        return False
    calls = [case["ranks"][one[1]]["calls"][-1] for one in (mine, right)]
    return bool(calls[0]["group"] == calls[1]["group"])


def _crossed_by_another(case: Any, mine: Any, right: Any) -> bool:
    return mine[0] == right[0] == "crossed groups"


def _odd_by(key: Callable[[int, Any], Any], *, last: bool = True) -> Callable[[Any, Any, Any], bool]:
    """Whether the rank's call is the only one of its kind among those that `key` puts together."""

    def fits(case: Any, mine: Any, right: Any) -> bool:
        part = MISMATCHES.get(mine[0])
        if part is None:
            return False
        made = [*_calls(case, last=last)]
        for rank, place, call in made:
            if rank == mine[1]:
                beside = [other[part] for _, at, other in made if key(at, other) == key(place, call)]
                if len(set(beside)) > 1 and beside.count(call[part]) == 1:
                    return True
        return False

    return fits


def _calls(case: Any, *, last: bool) -> Iterator[tuple[int, int, Any]]:
    """Rank, place in its list and call: of all calls, or of those that ranks made last."""
    for rank, state in enumerate(case["ranks"]):
        first = len(state["calls"]) - 1 if last else 0
        yield from ((rank, place, call) for place, call in enumerate(state["calls"]) if place >= first)


_BY_BOTH = "compare only calls that meet: those with the same group and the same number in that group"
# Each is (whether an answer that is not right fits, what is wrong, why, what to do).
_SLIPS: tuple[tuple[Callable[[Any, Any, Any], bool], str, str, str], ...] = (
    (
        _place_in_a_group,
        "your function returns a rank's position in a group instead of its number",
        "your answer is right, but your number is the right rank's position in a group, counted from 0",
        "return groups[name][position]: a rank has the same number in all groups",
    ),
    (
        _asked_later,
        "your function overlooks that an earlier condition already holds",
        "your function returned {mine!r}, which is true of the rank that you named, but {right!r} holds as well",
        "test the six conditions in order, each on all ranks, and stop at the first that holds",
    ),
    (
        _one_of_the_many,
        "your function blames a rank of the majority, but the odd one out is at fault",
        "the rank that you named meets the odd rank, but agrees with the majority",
        "count how often each call, or each size, occurs among the ranks that meet",
    ),
    (
        _one_that_waits,
        "the rank that you named is itself waiting; the other ranks wait for a different rank",
        "your function names one of the waiting ranks",
        "name the member of the group that is missing from the call",
    ),
    (
        _waits_with_the_odd_one,
        "in a circle, your function blames a rank that cannot be at fault",
        "your answer is right, but your rank waits in the same call as the rank at fault",
        "look at the ranks that are in both groups: one of them waits in a different call from the others",
    ),
    (
        _crossed_by_one_alone,
        "in a circle, your function blames a rank that cannot be at fault",
        "your answer is right, but your rank is not in both groups",
        "look at the ranks that are in both groups: one of them waits in a different call from the others",
    ),
    (
        _crossed_by_another,
        "in a circle, your function does not name the rank with a different order of calls",
        "your answer is right, but your rank is wrong",
        "of the ranks in both groups, name the one that waits in a different call from the others",
    ),
    (
        _odd_by(lambda place, call: call["number"]),
        "your function compares calls of different groups, but such calls never meet",
        "the call of the rank that you named is the odd one among calls with the same number if groups are ignored",
        _BY_BOTH,
    ),
    (
        _odd_by(lambda place, call: (call["group"], place), last=False),
        "your function uses a call's position in its rank's list as the call's number",
        "your rank's call is the odd one at its position in the ranks' lists, but these lists differ in length",
        _BY_BOTH,
    ),
    (
        _odd_by(lambda place, call: call["group"]),
        "your function compares calls with different numbers, but such calls never meet",
        "the call of the rank that you named is the odd one among the last calls of its group if numbers are ignored",
        _BY_BOTH,
    ),
    (
        _odd_by(lambda place, call: ()),
        "your function compares the ranks' last calls even if these calls do not meet",
        "your rank's last call is the odd one among all ranks' last calls if groups and numbers are ignored",
        _BY_BOTH,
    ),
)
