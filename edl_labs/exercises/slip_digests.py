"""Known slips by digests of what each would answer: a case carries them, so that students get sentences and no rules.

A judge's draw puts `slips` into a case: of each slip, by name, the digest of its answers to that case. The exercise's
module has the sentences. A slip is named where its digests are those of the answers to all cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from edl_labs.errors import Wrong

_DIGITS = 6  # as many as answers have to agree in: two ways to the same number differ behind them
Sentence = tuple[str, str, str]  # what, why, next


def digest(answers: Iterable[Any], *, least: float = 0.0) -> str:
    """Texts and numbers as a short text that does not show them; numbers up to `least` count as 0.

    >>> digest([0.1 + 0.2, "hit"]) == digest([0.3, "hit"]), digest([0.3]) == digest([0.31])
    (True, False)
    """
    return blake2b(",".join(_told(one, least) for one in answers).encode(), digest_size=6).hexdigest()


def named_slip(
    cases: list[Any], answers: list[str], said: Mapping[str, Sentence], *, of: str = "slips"
) -> Wrong | None:
    """The first slip that gives all answers (a digest for each case), as what the student reads; else None."""
    for name, (what, why, then) in said.items():
        if all(case[of].get(name) == mine for case, mine in zip(cases, answers, strict=True)):
            return Wrong(what, why=why, next=then)
    return None


def _told(one: Any, least: float) -> str:
    try:
        return "0" if abs(one) <= least else f"{one:.{_DIGITS}g}"
    except (TypeError, ValueError, OverflowError):  # a text; or None, an integer of 4000 bits: whatever came
        return str(one)[:99]
