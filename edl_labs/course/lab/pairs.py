"""Compares the known mistakes of one exercise in pairs: each must get its own message."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from edl_labs.checks import Outcome, RegisteredExercise, judge, plain_data
from edl_labs.checks.known_mistakes import KnownMistake, named
from edl_labs.course.lab.mistakes import Mistake

_JARGON = re.compile(
    r"\b(it|value)\[[^]]*\]|\bitem \d+ of it\b|\b(a|an) \w+ is expected\b|\bwrong form\b|\bevidence\b|\bMisfit\b"
)
_NUMBER = re.compile(r"\d[\d.,]*(e[+-]?\d+)?")


@dataclass(frozen=True)
class Shown:
    """What a mistake's student is shown: its evidence on each public case, encoded, and the first that is wrong.

    `case` counts from 0; it is None where every public case is right, or where the answer gave none.
    """

    mistake: Mistake
    evidence: Sequence[bytes]
    case: int | None
    sentence: str


def shown(
    mistake: Mistake,
    exercise: RegisteredExercise,
    cases: list[Any],
    records: Any,
    wants: list[Any],
    known: Sequence[KnownMistake] = (),
) -> Shown:
    """What the public check shows of a wrong answer that gave `records` for the cases of the public seed."""
    if not isinstance(records, list) or len(records) < len(cases):
        return Shown(mistake, (), None, "")
    public = [i for i, case in enumerate(cases) if exercise.spec.is_public(case)]
    asked, given, right = ([rows[i] for i in public] for rows in (cases, records, wants))
    seen = named(judge(exercise, asked, given, right, points=1.0), known, given, right)
    return Shown(mistake, [plain_data.encode(record) for record in given], seen.case_index, seen.what)


def jargon(seen: Outcome) -> str:
    """The first words of a message that speak of how evidence travels, which no student has seen; empty if none does.

    >>> jargon(Outcome("ex", "lab", "wrong", 0, 1, what="it[0] is None"))
    'it[0]'
    """
    found = _JARGON.search(" ".join((seen.what, seen.why, seen.next)))
    return found[0] if found else ""


def confused(answers: Iterable[Shown], *, untold: Collection[str] = ()) -> list[str]:
    """One sentence for each pair of an exercise's wrong answers where one gets the other's message.

    That is where both are shown the same sentence first, whatever numbers it quotes. A pair that says `# like: OTHER`
    may share one, if each one's `told` stands in it; three that are like one another need two such lines. A line that
    is not needed is reported too. Those that are `untold`, and known to be, are in no pair: they have no sentence to
    share.
    """
    known = {_name(one): one for one in answers}
    found = [text for one in known.values() for text in _stale(one, known)]
    families = _families(known)
    for first, second in combinations(known.values(), 2):
        if {_name(first), _name(second)} & set(untold) or not _same_sentence(first, second):
            continue
        if families[_name(first)] is families[_name(second)]:
            found += _unnamed(first, second)
        else:
            found.append(f"{_name(first)} and {_name(second)}: {_confusion(first, second)}")
    return found


def _name(one: Shown) -> str:
    return one.mistake.name


def _same_sentence(first: Shown, second: Shown) -> bool:
    if first.case is None or second.case is None:
        return False
    return _without_numbers(first.sentence) == _without_numbers(second.sentence)


def _without_numbers(sentence: str) -> str:
    """A sentence with its numbers taken out: another number is no other sentence.

    >>> _without_numbers("yours is 1.5e-3 s, off by 12 %")
    'yours is # s, off by # %'
    """
    return _NUMBER.sub("#", sentence)


def _confusion(first: Shown, second: Shown) -> str:
    """Why two wrong answers are told the same, and what helps."""
    told = f"both get the message {first.sentence!r}"
    differs = [i for i, (a, b) in enumerate(zip(first.evidence, second.evidence, strict=False)) if a != b]
    if not differs:
        return f"{told}; no public case tells them apart: draw one that does, or add # like: {_name(first)}"
    if first.case == second.case and first.case not in differs:
        return f"{told} in case {_counted(first.case)}; case {_counted(differs[0])} tells them apart: show it first"
    cases = sorted({_counted(first.case), _counted(second.case)})
    where = f"case {cases[0]}" if len(cases) == 1 else f"cases {cases[0]} and {cases[1]}"
    return f"{told} in {where}, where their evidence differs: give each its own message"


def _counted(case: int | None) -> int:
    return 1 + (case or 0)


def _unnamed(first: Shown, second: Shown) -> list[str]:
    """A pair that shares a sentence must both stand in it."""
    return [
        f"{_name(one)} shares {other.sentence!r} with {_name(other)}, which does not contain {one.mistake.told!r}"
        for one, other in ((first, second), (second, first))
        if one.mistake.told not in other.sentence
    ]


def _stale(one: Shown, known: Mapping[str, Shown]) -> list[str]:
    found = []
    for other in one.mistake.like:
        if other not in known or other == _name(one):
            found.append(f"{_name(one)} has # like: {other}, which is not another mistake of this exercise")
        elif not _same_sentence(one, known[other]):
            found.append(f"{_name(one)} has # like: {other}, but each gets its own message: remove this line")
    return found


def _families(known: Mapping[str, Shown]) -> dict[str, set[str]]:
    """For each wrong answer, all those that are like it, directly or through others."""
    families = {name: {name} for name in known}
    for name, one in known.items():
        for other in one.mistake.like:
            if other in families and families[other] is not families[name]:
                families[name] |= families[other]
                families |= dict.fromkeys(families[name], families[name])
    return families
