"""What a case fixes of a recorded program: its objects, their sizes, its kernels and what they cost.

The fields of operations say which values a case fixes (`from_case`). A judge records the same operations from the case
on a machine of its own, and refuses a program that has any of these values otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.virtual.errors import ProgramChanged, shown
from edl_labs.virtual.program import FOLLOWS, FROM_CASE, Check, Entry, Field, Program

_ROUNDING = 1e-9  # relative: sums of durations in another order differ by less


@dataclass(frozen=True)
class CaseProgram:
    """What a case fixes of a program, as operations that a judge recorded from it.

    A program begins with `setup`, which makes the case's objects, and ends with `end`. In between, an operation with
    fields from the case is one of `named`, or of a kind in `own`, which the student's code issues itself. `derived` are
    fields that the judge of this program computes elsewhere, from its data flow; `key` gives the name under which
    operations are the same to the case.
    """

    setup: Sequence[Entry] = ()
    named: Sequence[Entry] = ()
    end: Sequence[Entry] = ()
    own: Sequence[str] = ()
    derived: Sequence[str] = ()
    key: Callable[[str], str] = str


def require_case(kind: Program, program: Sequence[Entry], case: CaseProgram, *, owner: str = "the program") -> None:
    """ProgramChanged unless a program of this kind, whose form was checked, has what the case fixes.

    >>> from edl_labs.virtual.cluster.program import PROGRAM
    >>> made = {"op": "tensor", "tensor": 0, "numel": 64, "dtype": "fp32", "name": "buffer", "fill": "own"}
    >>> require_case(PROGRAM, [made], CaseProgram(setup=[made]))
    >>> require_case(PROGRAM, [{**made, "numel": 1}], CaseProgram(setup=[made]))
    Traceback (most recent call last):
        ...
    edl_labs.virtual.errors.ProgramChanged: the program was changed
      why:  operation 0 of the program should be the tensor 'buffer' with which this exercise begins
      next: use only the methods of the objects that your function receives, and do not change their records
    """
    facts, count = _Facts(kind, case), len(case.setup)
    for index, wanted in enumerate(case.setup):
        if index >= len(program) or program[index] != wanted:
            raise _changed(index, owner, f"should be the {_called(wanted)} with which this exercise begins")
    stop = max(count, len(program) - len(case.end))
    for index, entry in enumerate(program[count:stop], count):
        for one in (entry, *entry.get(kind.operations[entry["op"]].holds, ())):
            if problem := facts.problem(one):
                raise _changed(index, owner, problem)
    if [facts.whole(entry) for entry in program[stop:]] != facts.ends():
        raise _changed(stop, owner, "differs from the operations with which this exercise ends")


class _Facts:
    """What a case fixes of operations: an object counts by its number if the case made it first, else by its name."""

    def __init__(self, kind: Program, case: CaseProgram) -> None:
        self._operations, self._case = kind.operations, case
        self._objects: dict[int, int | str] = {}
        for entry in case.setup:
            if makes := self._operations[entry["op"]].makes:
                self._objects[entry[makes]] = entry[makes]
        self._known: dict[tuple[str, str], list[dict[str, Any]]] = {}
        first = dict(self._objects)
        for entry in case.named:
            self._note(entry)
            self._known.setdefault(self._key(entry), []).append(self._fixed(entry))
        self._objects = first

    def problem(self, entry: Entry) -> str:
        """What the case has otherwise than an operation; "" where nothing is."""
        self._note(entry)
        if entry["op"] in self._case.own or not (fixed := self._fixed(entry)):
            return ""
        alike = self._known.get(self._key(entry))
        if alike is None:
            return f"is {_called(entry)}, which does not occur in this exercise"
        if any(_is_same(fixed, one) for one in alike):
            return ""
        wrong = next((name for name in fixed if not any(_is_same(fixed[name], one[name]) for one in alike)), "work")
        return f"is {_called(entry)}, but its {wrong} differs from the one in this exercise"

    def ends(self) -> list[dict[str, Any]]:
        """The operations at the end of the case, as `whole` gives them."""
        return [self.whole(entry) for entry in self._case.end]

    def whole(self, entry: Entry) -> dict[str, Any]:
        """All of an operation but what follows from those before it."""
        self._note(entry)
        checks = self._operations[entry["op"]].checks
        free = {name: check for name, check in checks.items() if name in entry and _source(check) != FOLLOWS}
        return {"op": entry["op"]} | {name: self._value(check, entry[name]) for name, check in free.items()}

    def _note(self, entry: Entry) -> None:
        if makes := self._operations[entry["op"]].makes:
            self._objects[entry[makes]] = str(entry.get("name", ""))

    def _key(self, entry: Entry) -> tuple[str, str]:
        return entry["op"], self._case.key(str(entry.get("name", entry.get("stage", ""))))

    def _fixed(self, entry: Entry) -> dict[str, Any]:
        return {
            name: self._value(check, entry.get(name))
            for name, check in self._operations[entry["op"]].checks.items()
            if _source(check) == FROM_CASE and name not in self._case.derived
        }

    def _value(self, check: Check, value: Any) -> Any:
        if not (isinstance(check, Field) and check.regions and value):
            return value
        parts = value if type(value[0]) is list else [value]
        return [[self._objects.get(number), *bounds] for number, *bounds in parts]


def _source(check: Check) -> str:
    return check.source if isinstance(check, Field) else ""


def _is_same(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of floats."""
    if isinstance(one, dict):
        return all(_is_same(value, other[name]) for name, value in one.items())
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_ROUNDING)
    return bool(one == other)


def _called(entry: Entry) -> str:
    return f"{entry['op']} {shown(entry['name'])}" if "name" in entry else str(entry["op"])


def _changed(index: int, owner: str, problem: str) -> ProgramChanged:
    return ProgramChanged(
        "the program was changed",
        why=f"operation {index} of {owner} {problem}",
        next="use only the methods of the objects that your function receives, and do not change their records",
    )
