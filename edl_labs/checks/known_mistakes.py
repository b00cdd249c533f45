"""Known mistakes, recognized by the answers that they give: no judge contains a second version of a mistake.

For each mistake with a `# next:` line the build stores its message, and a digest of its answers to every public case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

from edl_labs.checks._judge import Outcome

# compare() usually allows 1e-6, and a golden's last digits differ between processors
_DIGITS = 6
_PARTS = "parts"  # the entry of evidence whose entries are independent: {"parts": {"held": ..., "sent": ...}}
_INNER = "."  # before the digest of one of those


@dataclass(frozen=True)
class KnownMistake:
    """The message of a mistake, and the digests of the parts of its evidence in each case; none where it failed.

    `code` is a digest of the mistake's code, by which the build knows that it is unchanged.
    """

    what: str
    why: str
    next: str
    digests: tuple[tuple[str, ...], ...]
    code: str = ""

    def to_json(self) -> dict[str, Any]:
        """As goldens contain it; `from_json` reads it."""
        lines = [" ".join(d) for d in self.digests]
        return {"what": self.what, "why": self.why, "next": self.next, "code": self.code, "digests": lines}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> KnownMistake:
        """Reads what `to_json` wrote."""
        lines = tuple(tuple(d.split()) for d in plain["digests"])
        return cls(plain["what"], plain["why"], plain["next"], lines, plain.get("code", ""))


def digests(records: Iterable[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    """For each record of `collect`, the digests of the parts of its evidence; none where there is no evidence.

    >>> one, other = digests([{"value": {"a": 0.1 + 0.2, "b": 7}}, {"value": {"a": 0.3, "b": 8.0}}])
    >>> one[0] == other[0], one[1] == other[1]
    (True, False)
    """
    return tuple(tuple(f"{mark}{_digest(part)}" for mark, part in parts_of(record)) for record in records)


def named(outcome: Outcome, known: Sequence[KnownMistake], got: Any, want: list[Any]) -> Outcome:
    """The outcome with the message of the known mistake that explains the records `got` of the public cases, if any."""
    if not known or outcome.state not in ("wrong", "partly") or not isinstance(got, list):
        return outcome
    found = _recognized(known, digests(got), digests({"value": one} for one in want))
    return replace(outcome, what=found.what, why=found.why, next=found.next) if found else outcome


_Digests = Sequence[Sequence[str]]  # by case and part


def _recognized(known: Sequence[KnownMistake], got: _Digests, right: _Digests) -> KnownMistake | None:
    """The mistake that explains every wrong part, else the first that explains one of `parts`, in all cases.

    Those are independent of each other; another entry may follow from them. A mistake explains a part if that
    part is right or the mistake's own in each case, and nothing if it gets a part wrong that is right here.
    """
    lengths, wrong = list(map(len, right)), _wrong_parts(got, right)
    if list(map(len, got)) != lengths or not wrong:
        return None
    usable = [one for one in known if list(map(len, one.digests)) == lengths]
    usable = [one for one in usable if _wrong_parts(one.digests, right) <= wrong]
    for parts in chain([wrong], ({at} for at in sorted(wrong) if _is_inner(at, right))):
        for one in usable:
            if all(
                mine[at] in (his[at], known_one[at])
                for mine, his, known_one in zip(got, right, one.digests, strict=True)
                for at in parts
                if at < len(his)
            ):
                return one
    return None


def _is_inner(at: int, right: _Digests) -> bool:
    return all(case[at].startswith(_INNER) for case in right if at < len(case))


def _wrong_parts(got: _Digests, right: _Digests) -> set[int]:
    pairs = (zip(mine, his, strict=False) for mine, his in zip(got, right, strict=False))
    return {at for pair in pairs for at, (one, other) in enumerate(pair) if one != other}


def parts_of(record: Any) -> Iterator[tuple[str, Any]]:
    """What gets a digest each, with the mark before it: the entries of a dict, those of `parts` one by one, else all.

    A record without evidence has no part.
    """
    if not isinstance(record, dict) or "value" not in record:
        return
    value = record["value"]
    if not isinstance(value, dict) or not value:
        yield "", value
        return
    for key in sorted(value, key=str):
        entry = value[key]
        if key == _PARTS and isinstance(entry, dict):
            yield from ((_INNER, entry[name]) for name in sorted(entry, key=str))
        else:
            yield "", entry


def digest_of_text(text: str) -> str:
    """Twelve letters that differ where texts do."""
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _digest(value: Any) -> str:
    return digest_of_text(",".join(_texts(value)))


def _texts(value: Any) -> Iterator[str]:
    """Keys, lengths and values of plain data, floats at `_DIGITS` digits."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield str(key)
            yield from _texts(value[key])
    elif isinstance(value, list | tuple):
        yield str(len(value))
        for item in value:
            yield from _texts(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield _number(value)
    else:
        yield str(value)


def _number(value: float) -> str:
    try:
        return f"{value + 0.0:.{_DIGITS}g}"
    except OverflowError:  # an integer beyond float's range
        return str(value)
