"""Changes the library objects that a probe passes to a student's functions, before these functions run.

Methods are left alone: what they do when a student's function calls them is what its code does.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from edl_labs.checks import RegisteredExercise
from edl_labs.checks.probe_process import Cell, ProbeProcess
from edl_labs.checks.spec import Case
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.rules import defined_names

# What both kinds of cells begin with. A list may hold objects (layers, buffers); one level of attributes is followed.
_HELPERS = """
def _forged_objects(arguments):
    for one in arguments:
        for item in one if isinstance(one, (list, tuple)) else [one]:
            if type(item).__module__.startswith("edl_labs"):
                yield item


def _forged_attributes(one, above=""):
    for name in [name for name in dir(one) if name[0] != "_"]:
        try:
            value = getattr(one, name)
        except Exception:
            continue
        if callable(value):
            continue
        path = f"{above or type(one).__name__}.{name}"
        yield path, value
        if not above and type(value).__module__.startswith("edl_labs"):
            yield from _forged_attributes(value, path)


def _forged_function(function, around):
    def called(*given, **named):
        return around(function, given, named)

    return called


def _forged_names(names, around):
    for name in names:
        found = globals().get(name)
        if not isinstance(found, type):
            globals()[name] = _forged_function(found, around)
            continue
        for part, value in list(vars(found).items()):
            if isinstance(value, staticmethod):
                setattr(found, part, staticmethod(_forged_function(value.__func__, around)))
            elif hasattr(value, "__code__"):
                setattr(found, part, _forged_function(value, around))
"""
# What each attribute is after a call, a line of JSON for each of the first calls: a number, or null for all else.
_NOTING = """
_FORGED_LEFT = [{calls}]


def _forged_note(function, given, named):
    import json

    try:
        return function(*given, **named)
    finally:
        _FORGED_LEFT[0] -= 1
        if _FORGED_LEFT[0] >= 0:
            found = {{}}
            for one in _forged_objects([*given, *named.values()]):
                for path, value in _forged_attributes(one):
                    found.setdefault(path, value if type(value) in (int, float, bool) else None)
            with open({file!r}, "a") as lines:
                lines.write(json.dumps(found) + "\\n")


_forged_names({names!r}, _forged_note)
"""
_CHANGING = """
_FORGED_CALLS = []


def _forged_value(value):
    how, told = {how!r}, {told!r}
    if how == "told":
        return told[min(len(_FORGED_CALLS), len(told)) - 1]
    if type(value) in (int, float, bool):
        return type(value)({{"0": 0, "1": 1, "half": value / 2, "double": value * 2}}[how])
    return type(value)() if type(value) in (str, list, tuple, dict) else 0


def _forged_change(function, given, named):
    _FORGED_CALLS.append(function)
    kind, *above, name = {path!r}.split(".")
    for one in _forged_objects([*given, *named.values()]):
        if type(one).__name__ != kind:
            continue
        owner = getattr(one, above[0], None) if above else one
        value = getattr(owner, name, None)
        for change in (setattr, object.__setattr__, lambda *parts: setattr(type(owner), *parts[1:])):
            try:
                change(owner, name, _forged_value(value))
                break
            except Exception:
                continue
    return function(*given, **named)


_forged_names({names!r}, _forged_change)
"""
_NUMBER_HOW = ("0", "1", "half", "double", "told")
_CALLS = 32  # of a case: what a function that is called in each step is given stays the same
_CPU_S = 20.0  # of one wrong answer in a few cases: the slowest probe of a case takes 3
Noted = list[dict[str, Any]]
Change = tuple[str, str, list[Any]]


class ObjectChanges:
    """The objects that one exercise's functions are given, and what these functions come to when those were changed.

    `noted` has for each case and call the attributes by path, with their numbers after the solution's call, or None.
    """

    def __init__(self, lab: Lab, exercise: RegisteredExercise, cases: list[Case], origin: ProbeProcess) -> None:
        self.exercise, self.cases, self.origin = exercise, cases, origin
        self.names = defined_names(lab.cell("solve", exercise.name))
        self.noted = [self._note([case]) for case in cases]

    def _note(self, cases: list[Case]) -> Noted:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "noted"
            self._ask([("noted", _HELPERS + _NOTING.format(names=self.names, file=str(file), calls=_CALLS))], cases)
            return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def changes(self, asked: Collection[int], *, turn: int, most: int) -> list[Change]:
        """Changes of what these cases have."""
        return changes([call for at in asked for call in self.noted[at]], turn=turn, most=most)

    def values(self, wrong: Cell, change: Change, asked: Collection[int]) -> list[Any] | None:
        """The evidence of some cases after a change, None where a case gave none."""
        path, how, _ = change
        told = [call.get(path) for at in asked for call in self.noted[at]]
        cell = _HELPERS + _CHANGING.format(names=self.names, path=path, how=how, told=told)
        records = self._ask([wrong, ("changed", cell)], [self.cases[at] for at in asked])
        if records is None or len(records) < len(asked) or any("value" not in record for record in records):
            return None
        return [record["value"] for record in records]

    def _ask(self, cells: list[Cell], cases: list[Case]) -> list[dict[str, Any]] | None:
        found = self.origin.collect_each(self.exercise.name, cases, changed=[cells], cpu_s=_CPU_S, wall_s=5 * _CPU_S)
        return found[0] if found else None


def changes(calls: Noted, *, turn: int, most: int) -> list[Change]:
    """At most `most` changes: path, how, and what an attribute was after each of the solution's calls.

    Each attribute once, then numbers in each other way. The wrong answer whose turn it is begins where the one before
    ended, so that together they try all changes even where `most` is small.

    >>> calls = [{"Link.rate": 4.0, "Link.send": None}, {"Link.rate": 5.0, "Link.send": None}]
    >>> changes(calls, turn=0, most=2)
    [('Link.rate', '0', [4.0, 5.0]), ('Link.send', '0', [None, None])]
    >>> [how for _, how, _ in changes(calls, turn=1, most=2)]
    ['1', 'half']
    """
    known: Mapping[str, None] = {path: None for call in calls for path in call}
    found = {path: [call.get(path) for call in calls] for path in known}
    every = [
        (path, _NUMBER_HOW[(at + way) % len(_NUMBER_HOW)] if _is_number(told) else "0", told)
        for way in range(len(_NUMBER_HOW))
        for at, (path, told) in enumerate(found.items())
        if not way or _is_number(told)
    ]
    begin = turn * most % len(every) if every else 0
    return (every[begin:] + every[:begin])[:most]


def _is_number(told: list[Any]) -> bool:
    return any(value is not None for value in told)
