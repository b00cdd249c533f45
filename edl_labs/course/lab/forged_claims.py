"""Replacements of claims in evidence: values that a student's process could report instead of its real ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, Literal

from edl_labs.checks import plain_data
from edl_labs.course.lab.forged_programs import OpenedText, closed, fixed_fields, opened

Place = tuple[str | int, ...]
Answers = Collection[str] | Literal["all"]
MOST = 200  # replacements in one wrong answer's evidence


@dataclass(frozen=True, eq=False)
class Replacement:
    """One lie: the field it is about, how it lies, the values of all cases with it, and the cases that it changed."""

    field: str
    how: str
    values: list[Any]
    cases: frozenset[int]


def is_claim(field: str, answers: Answers) -> bool:
    """Whether all below a field is a claim: neither an answer nor something that holds one.

    >>> is_claim("steps.count", ["steps.scale"]), is_claim("steps", ["steps.scale"]), is_claim("count", "all")
    (True, False, False)
    """
    if answers == "all":
        return False
    return not any(f"{field}.".startswith(f"{one}.") or f"{one}.".startswith(f"{field}.") for one in answers)


def is_fixed(text: str, field: str, answers: Answers) -> bool:
    """Whether a field that an operation in the program `text` does not choose is left so by `answers`.

    >>> is_fixed("programs", "scale.factor", "all"), is_fixed("programs", "scale.factor", ["programs.scale.factor"])
    (True, False)
    """
    names = () if answers == "all" else answers
    return not any(f"{text}.{field}.".startswith(f"{one}.") for one in names if len(one) > len(text))


def replacements(values: list[Any], wants: list[Any], answers: Answers, *, most: int = MOST) -> list[Replacement]:
    """At most `most` changes of claims alone, in turn from every field, in the evidence of all cases; each field once.

    In a recorded program the claims are what its machine's table does not leave free and `answers` does not name.

    >>> [(one.how, one.values) for one in replacements([{"x": 3, "n": 1}], [{"x": 5, "n": 1}], ["x"])][:2]
    [('0 everywhere', [{'x': 3, 'n': 0}]), ('half everywhere', [{'x': 3, 'n': 0.5}])]
    """
    read = opened(values)
    fields = claims_of(read, answers)
    right = dict(_nodes(opened(wants)))
    rows = zip_longest(*(_lies(field, nodes, right) for field, nodes in fields.items()))
    in_turn = (_replacement(field, how, told, values, read) for row in rows for field, how, told in filter(None, row))
    return list(islice(in_turn, max(most, len(fields))))


def _replacement(field: str, how: str, changes: dict[Place, Any], values: list[Any], read: list[Any]) -> Replacement:
    cases = frozenset(place[0] for place in changes if isinstance(place[0], int))
    said = [closed(_changed(read[at], changes, (at,))) if at in cases else value for at, value in enumerate(values)]
    return Replacement(field, how, said, cases)


def claims_of(values: list[Any], answers: Answers) -> dict[str, dict[Place, Any]]:
    """The nodes of opened evidence that are claims, by field; a field of a program names its operation."""
    fields: dict[str, dict[Place, Any]] = {}
    texts: dict[Place, set[tuple[str, str]]] = {}
    entries: dict[Place, str] = {}
    for place, node in _nodes(values):
        text = next((place[:end] for end in range(len(place)) if place[:end] in texts), None)
        if text is None and isinstance(node, OpenedText):
            texts[place] = fixed_fields(node)
        if text is not None and isinstance(node, dict) and type(node.get("op")) is str:
            entries[place] = node["op"]
        field = field_of(place)
        if text is None and field and is_claim(field, answers):
            fields.setdefault(field, {})[place] = node
        elif text is not None and (entries.get(place[:-1]), place[-1]) in texts[text]:
            name, key = field_of(text), f"{entries[place[:-1]]}.{place[-1]}"
            if is_fixed(name, key, answers):
                fields.setdefault(f"{name}.{key}", {})[place] = node
    return fields


def _same(one: Any, other: Any) -> bool:
    return one is other or plain_data.encode(one) == plain_data.encode(other)


def field_of(place: Place) -> str:
    """The names on the way to a place, without the numbers of items: all items of a list share their fields.

    >>> field_of((0, "steps", 3, "scale"))
    'steps.scale'
    """
    return ".".join(step for step in place if isinstance(step, str))


def _nodes(node: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    yield place, node
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, (list, tuple)) else ()
    for step, item in items:
        yield from _nodes(item, (*place, step))


def _changed(node: Any, changes: Mapping[Place, Any], place: Place = ()) -> Any:
    if place in changes:
        return changes[place]
    if isinstance(node, dict):
        return {step: _changed(item, changes, (*place, step)) for step, item in node.items()}
    if isinstance(node, (list, tuple)):
        return type(node)(_changed(item, changes, (*place, step)) for step, item in enumerate(node))
    return node


def _lies(field: str, nodes: dict[Place, Any], right: dict[Place, Any]) -> Iterator[tuple[str, str, dict[Place, Any]]]:
    """What can be said of a field that is not what it says: how, and the new value at each place."""
    for how, told in _sayings(nodes, right):
        if other := {place: one for place, one in told.items() if not _same(one, nodes[place])}:
            yield field, how, other


def _sayings(nodes: dict[Place, Any], right: dict[Place, Any]) -> Iterator[tuple[str, dict[Place, Any]]]:
    """What can be said of a field: in all cases and items at once, then at one place alone."""
    known = {place: right[place] for place in nodes if place in right}
    yield "the solution's value everywhere", known
    numbers = {place: node for place, node in nodes.items() if type(node) in (int, float, bool)}
    for how, told in (("0", _zero), ("1", _one), ("half", _half), ("double", _double)):
        yield f"{how} everywhere", {place: told(node) for place, node in numbers.items()}
    for place, node in nodes.items():
        if isinstance(node, list):
            yield from ((how, {place: items}) for how, items in _rearranged(node))
    for place in known:
        yield f"the solution's value at {place}", {place: known[place]}
    for place, number in numbers.items():
        for how, told in (("0", _zero), ("1", _one), ("half", _half), ("double", _double)):
            yield f"{how} at {place}", {place: told(number)}


def _rearranged(items: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    for index, item in enumerate(items):
        yield f"item {index} dropped", items[:index] + items[index + 1 :]
        yield f"item {index} doubled", [*items[: index + 1], item, *items[index + 1 :]]
        if index:
            yield (
                f"items {index - 1} and {index} swapped",
                [*items[: index - 1], item, items[index - 1], *items[index + 1 :]],
            )


def _zero(number: float) -> float:
    return type(number)(0)


def _one(number: float) -> float:
    return type(number)(1)


def _half(number: float) -> float:
    return number // 2 if type(number) is int and number % 2 == 0 else number / 2


def _double(number: float) -> float:
    return number * 2
