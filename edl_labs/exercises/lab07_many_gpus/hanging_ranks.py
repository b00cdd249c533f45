"""who_hangs: from the state of all ranks, what keeps them from going on, and which rank it is."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.errors import Wrong
from edl_labs.exercises.lab07_many_gpus.hang_slips import ABSENT, ANSWERS, MISMATCHES, WORDS, in_common
from edl_labs.units import counted


@exercise("who_hangs")
class WhoHangs(Exercise):
    """What keeps ranks waiting, and the rank at fault, from what each of them was last seen doing.

    `who_hangs(groups, ranks)` gives (one of ANSWERS, a rank); corrected for chance.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        ranks = [{**one, "calls": [{**call} for call in one["calls"]]} for one in given["ranks"]]
        answer = student.who_hangs({name: [*members] for name, members in given["groups"].items()}, ranks)
        return [answer] if isinstance(answer, str) else list(answer) if isinstance(answer, Set) else answer

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 2:
            why = f"your function returned {str(got)[:60]}, which has {counted(len(got), 'value')}"
            raise Wrong("your function does not return an answer and a rank", why=why, next="return (answer, rank)")
        if got[0] not in ANSWERS:
            why = f"your function returned {str(got[0])[:30]!r}; the answers are {', '.join(ANSWERS)}"
            raise Wrong("your first value is not one of the six answers", why=why, next="return one of these strings")
        if got[1] != want[1]:
            _judge_rank(case, got[1], want)
        if got[0] != want[0]:
            raise _word_symptom(case, got[0], want[0])
        if got[1] != want[1]:
            why = f"your function named rank {got[1]!r}"
            if want[0] == "crossed groups":
                then = (
                    "look at the ranks that are in both groups: one of them waits in a different call from the others"
                )
                raise Wrong(
                    "in a circle, your function does not name the rank with a different order of calls",
                    why=why,
                    next=then,
                )
            then = "which rank do others wait for, while it does not wait itself?"
            raise Wrong("your function does not name the rank that keeps the others waiting", why=why, next=then)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What all answers that are not right have in common."""
        return in_common(cases, got, want)

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, answers=len(ANSWERS))

    def format_case(self, case: Any) -> str:
        """The groups, and a line for each rank."""
        groups = "; ".join(f"{name}: {', '.join(map(str, members))}" for name, members in case["groups"].items())
        return "\n".join([groups, *(f"  rank {rank}: {_told(one)}" for rank, one in enumerate(case["ranks"]))])


def _told(one: Any) -> str:
    call = one["calls"][-1]
    last = f"{call['call']} {call['number']} of {call['group']}, {call['numel']} elements"
    return f"waits in {last}" if one["doing"] == "waits" else f"{one['doing']}; last finished call: {last}"


def _waited_groups(case: Any) -> list[str]:
    return [one["calls"][-1]["group"] for one in case["ranks"] if one["doing"] == "waits"]


def _judge_rank(case: Any, rank: Any, want: Any) -> None:
    """Wrong where the rank itself says what was overlooked."""
    if type(rank) is not int or not 0 <= rank < len(case["ranks"]):
        then = f"return a number from 0 to {len(case['ranks']) - 1}"
        raise Wrong("your second value is not a rank", why=f"your function returned {str(rank)[:30]!r}", next=then)
    awaited = {member for name in _waited_groups(case) for member in case["groups"][name]}
    if rank not in awaited:
        then = "name only a rank for which other ranks wait: a call waits only for members of its group"
        why = f"rank {rank} is not in any group in which ranks wait"
        raise Wrong("no rank waits for the rank that you named", why=why, next=then)
    waits = case["ranks"][rank]["doing"] == "waits"
    if waits and want[0] in ABSENT:
        why = f"rank {rank} waits in a call"
        what = "the rank that you named is itself waiting; the other ranks wait for a different rank"
        raise Wrong(what, why=why, next="which rank is missing from its call?")
    calls = [case["ranks"][one]["calls"][-1] for one in (rank, want[1])]
    meets = all(calls[0][part] == calls[1][part] for part in ("group", "number"))
    if waits and want[0] in MISMATCHES and not meets:
        why = f"rank {rank} waits in a call that the rank at fault does not take part in"
        raise Wrong(
            "you named a rank whose call matches every call that it meets",
            why=why,
            next="compare only calls that meet",
        )
    if waits and want[0] in MISMATCHES:
        why = f"rank {rank} makes the same call as most others"
        then = "count how often each call occurs among those that meet"
        raise Wrong("your function blames a rank of the majority, but the odd one out is at fault", why=why, next=then)


def _word_symptom(case: Any, got: str, want: str) -> Wrong:
    why = f"your function returned {got!r}"
    if want in MISMATCHES and got not in MISMATCHES:
        then = "look for mismatched calls first: they hang, even if other ranks have not arrived yet"
        return Wrong("your answer misses calls that meet but do not match", why=why, next=then)
    if got in MISMATCHES and want not in MISMATCHES:
        then = "compare only calls that meet: those with the same group and the same number in that group"
        return Wrong(
            "your answer names a mismatch, but in this case, calls that meet do not differ", why=why, next=then
        )
    if got == "crossed groups" and len(set(_waited_groups(case))) == 1:
        why = f"{why}, but all waiting ranks wait in the same group"
        return Wrong(
            "your answer names a circle, but ranks can wait in a circle only across two groups",
            why=why,
            next="which rank is missing from that group's call?",
        )
    if got == "crossed groups":
        then = "go from a waiting rank to a rank that it waits for, and so on: do you reach a rank that does not wait?"
        return Wrong(
            "your answer names a circle, but the ranks of these two groups do not wait in a circle", why=why, next=then
        )
    what, then = WORDS[want]
    return Wrong(what, why=why, next=then)
