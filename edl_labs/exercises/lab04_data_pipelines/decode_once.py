"""decode_once: which transforms of a drawn chain may be done once, offline, without changing what the model sees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong


@exercise("decode_once")
class DecodeOnce(Exercise):
    """The transforms of a chain that may be done once, offline, without changing what the model sees.

    `student.move_offline(chain)` gives the places of all transforms that may be done once.
    """

    answers = "all"

    answer_form: ClassVar[Any] = [0]

    def probe(self, student: Any, given: Any) -> Any:
        answer = student.move_offline(given["chain"])
        return list(answer) if isinstance(answer, (list, tuple, set, range)) else answer

    def format_answer(self, case: Any, got: Any) -> str:
        """The places, with the names of the transforms there."""
        return ", ".join(f"{place} ({case['chain'][place]['name']})" for place in got) or "no place"

    def compare(self, case: Any, got: Any, want: Any) -> None:
        chain = case["chain"]
        if any(type(place) is not int or not 0 <= place < len(chain) for place in got):
            raise Wrong(
                "your answer contains a place that is not in the chain",
                why=f"the chain has {len(chain)} transforms, at places 0 to {len(chain) - 1}",
                next="return a list of the places that may move offline",
            )
        for place in sorted(set(got) - set(want)):
            raise _should_stay(chain, place, want)
        missing = sorted(set(want) - set(got))
        if missing:
            raise _may_move(chain, missing[0], want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The one rule in _rules that gives every answer."""
        chains = [case["chain"] for case in cases]
        answers = [set(places) for places in got]
        if answers == [set(places) for places in want]:
            return None
        if all(
            mine == set(range(len(chain))) - set(right)
            for chain, mine, right in zip(chains, answers, want, strict=True)
        ):
            why = "in every case, your function returned the places of the transforms that have to stay"
            return Wrong(
                "you returned the transforms that stay",
                why=why,
                next="return the places of the transforms that may move, not of those that stay",
            )
        if all(_past_those_behind(chain) == mine - {0} for chain, mine in zip(chains, answers, strict=True)):
            why = "your answers are exactly the transforms that may change places with every random one after them"
            then = (
                "check a transform against those before it that stay: to be done first, it has to move past only these"
            )
            return Wrong("your code compares transforms with the random ones after them", why=why, next=then)
        if all(
            mine == {place for place in right if chain[place]["kind"] != "decode"}
            for chain, mine, right in zip(chains, answers, want, strict=True)
        ):
            why = "your answers contain everything else that may move, but never decoding, which has nothing before it"
            then = "return everything that may move; whether storing pixels is worth the space is a separate question"
            return Wrong("you left decoding in the loader, but it may be done once", why=why, next=then)
        lost = sorted(_lost(chains, answers))
        if lost:
            why = "in your answers, " + ", and ".join(f"no `{mover}` moves past a `{other}`" for mover, other in lost)
            then = "two kinds that may change places may do so whichever comes first: does your rule allow both orders?"
            return Wrong("you left a transform in the loader, but it may move past those before it", why=why, next=then)
        fitting = {
            rule[0]: rule[1:]
            for rule in _rules()
            if all(_moved(chain, *rule[3:]) == mine for chain, mine in zip(chains, answers, strict=True))
        }
        if len(fitting) != 1:
            return None
        ((what, (why, then, *_)),) = fitting.items()
        return Wrong(what, why=why, next=then)

    def format_case(self, case: Any) -> str:
        return "\n".join(
            f"{place}. {step['name']} ({step['kind']}{', random' if step['random'] else ''})"
            for place, step in enumerate(case["chain"])
        )

    def student_inputs(self, case: Any) -> object:
        """The chain."""
        return case["chain"]


# Pairs that change places whatever the transforms are: pixels that only move or disappear keep their values, and
# statistics of the whole image do not care where a pixel is.
_FREE = (("point", "move"), ("point", "cut"), ("whole", "move"))
_KINDS = {
    "point": "a change of each pixel's value (point)",
    "move": "a rearrangement of the pixels (move)",
    "cut": "a crop (cut)",
    "mix": "a mix of neighbouring pixels (mix)",
    "whole": "a change that depends on the whole image (whole)",
}


def _moved(chain: Any, passes: set[tuple[str, str]], nearest: bool) -> set[int]:
    """What moves offline where (a, b) in `passes` lets an a pass a b before it that stays, or the nearest one alone."""
    staying: list[str] = []
    moved = set()
    for place, step in enumerate(chain):
        blockers = staying[-1:] if nearest else staying
        if step["random"] or any((step["kind"], other) not in passes for other in blockers):
            staying.append(step["kind"])
        else:
            moved.add(place)
    return moved


def _rules() -> Iterator[tuple[str, str, str, set[tuple[str, str]], bool]]:
    """What is wrong, why, what to do, and the wrong rule as `_moved` takes it."""
    free = {pair for one in _FREE for pair in (one, one[::-1])}
    why = "your answers are those of a rule that compares a transform only with the last earlier transform that stays"
    yield (
        "your code considers only the nearest earlier transform that stays",
        why,
        "compare a transform with every earlier transform that stays",
        free,
        True,
    )
    yield (
        "your code swaps any two transforms of the same kind",
        "most functions of one kind give a different image in the other order: adding 1 to each pixel and doubling "
        "each pixel are both a `point`",
        "swap two transforms of the same kind only if the order never matters for functions of that kind",
        free | {(kind, kind) for kind in _KINDS},
        False,
    )
    for one, other in itertools.combinations_with_replacement(_KINDS, 2):
        if (one, other) not in free and (one, other) != ("move", "cut"):  # of which `_should_stay` says more
            yield (
                f"your code swaps {_KINDS[one]} and {_KINDS[other]}",
                f"for most functions, a `{one}` before a `{other}` gives a different image than after it",
                "swap only pairs that give the same image for every function of their kind",
                free | {(one, other), (other, one)},
                False,
            )


def _lost(chains: list[Any], answers: list[set[int]]) -> set[tuple[str, str]]:
    """The (a, b) of which the answers let no a pass a b, though it may; nothing where other rules fit as well."""
    free = {pair for one in _FREE for pair in (one, one[::-1])}
    if all(_moved(chain, set(), False) == mine for chain, mine in zip(chains, answers, strict=True)):
        return set()  # nothing passes anything: that is no matter of pairs
    lost = [
        set(left_out)
        for count in range(1, len(free) + 1)
        for left_out in itertools.combinations(sorted(free), count)
        if all(_moved(chain, free - {*left_out}, False) == mine for chain, mine in zip(chains, answers, strict=True))
    ]
    return set.intersection(*lost) if lost else set()


def _past_those_behind(chain: Any) -> set[int]:
    """What moves offline, decoding aside, where the random ones behind a transform are to be passed, none before it."""
    free = [{*pair} for pair in _FREE]
    return {
        place
        for place, step in enumerate(chain)
        if place
        and not step["random"]
        and all({step["kind"], other["kind"]} in free for other in chain[place + 1 :] if other["random"])
    }


def _may_move(chain: Any, place: int, want: Any) -> Wrong:
    what, name = (
        "in your answer, work that could be done once is done in every epoch",
        f"{chain[place]['name']!r} (place {place})",
    )
    if all(before in want for before in range(place)):
        why, then = (
            f"nothing that has to stay comes before {name}",
            "look only at the transforms before this one: those after it cannot keep it from moving",
        )
    else:
        why = f"{name} may change places with everything before it that has to stay"
        then = "a transform may move even if others before it stay: for which pairs of kinds does the order not matter?"
    return Wrong(what, why=why, next=then)


def _should_stay(chain: Any, place: int, want: Any) -> Wrong:
    step = chain[place]
    if step["random"]:
        return Wrong(
            "your answer does a random transform once for all epochs",
            why=f"{step['name']!r} (place {place}) would give the same result in every epoch",
            next="keep every transform that is drawn again for each sample in the loader",
        )
    free = [{*pair} for pair in _FREE]
    before = [chain[i] for i in range(place) if i not in want]
    blocker = next(other for other in before if {step["kind"], other["kind"]} not in free)
    if {step["kind"], blocker["kind"]} == {"move", "cut"}:
        return Wrong(
            "you swapped a `cut` and a `move`",
            why=f"{step['name']!r} before {blocker['name']!r} shows the model a different part of the image",
            next="mirror a small image and cut its left half, in both orders: are the pixels the same?",
        )
    if blocker["random"]:
        return Wrong(
            "you moved a transform past a random one with which it does not commute",
            why=f"{step['name']!r} gives a different image when it comes before {blocker['name']!r}",
            next="try both orders on a small image: are the pixels the same?",
        )
    return Wrong(
        "you moved a transform past one that has to stay",
        why=f"{blocker['name']!r} has to stay after a random transform, and {step['name']!r} works on its result",
        next="check the transforms that have to stay too, even if they are not random themselves",
    )
