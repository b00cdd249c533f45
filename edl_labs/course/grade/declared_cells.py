"""Which cells run: the student's, those that the lab's source declares, and cells that define a name which those read.

A lab declares its set-up, its parameters and what is given for its answers. A released cell without such a role only
shows something: while it is unchanged, no mark needs it.
"""

from __future__ import annotations

import re
import symtable
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from edl_labs.course.grade.bounded_call import bounded_call
from edl_labs.course.grade.plan import MarkingPlan

_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)  # IPython's own lines


class CellNames(NamedTuple):
    """The names of the notebook that a cell binds, and those of other cells that it, or a function of it, reads."""

    binds: frozenset[str]
    reads: frozenset[str]


def declared_plan(plan: MarkingPlan) -> MarkingPlan:
    """The plan in which demonstrations do not run; the plan itself where all cells have to.

    All do where the release declares no roles, and where the student's code cannot be read.
    """
    running = [index for index, cell in enumerate(plan.cells) if cell.runs]
    shows = [plan.cells[index].is_demonstration for index in running]
    if not any(shows) or not any(cell.known and cell.known.lab_role for cell in plan.cells):
        return plan
    found = bounded_call(needed, [plan.cells[index].source for index in running], shows)
    if found is None or len(found) == len(running):
        return plan
    kept = {running[place] for place in found}
    return replace(plan, cells=tuple(replace(cell, runs=cell.runs and i in kept) for i, cell in enumerate(plan.cells)))


def needed(sources: Sequence[str], shows: Sequence[bool]) -> list[int] | None:
    """Of the cells that run, by number, those that are no demonstration, and what those read; None for all.

    >>> needed(["a = 1", "b = a", "c = 2", "print(b)"], [True, True, True, False])
    [0, 1, 3]
    """
    names = [cell_names(source) for source in sources]
    if None in names:
        return None
    known = [one for one in names if one is not None]
    binders: dict[str, list[int]] = {}
    for index, one in enumerate(known):
        for name in one.binds if shows[index] else ():
            binders.setdefault(name, []).append(index)
    # What a star import binds is not in its text.
    kept = {i for i, shown in enumerate(shows) if not shown or "import *" in sources[i]}
    left = [*kept]
    while left:
        found = {i for name in known[left.pop()].reads for i in binders.pop(name, ())} - kept
        kept |= found
        left += found
    return sorted(kept)


def cell_names(source: str) -> CellNames | None:
    """What a cell does to the notebook's names; None where Python cannot read it.

    >>> [sorted(part) for part in cell_names("def f(x): return x + y")]
    [['f'], ['y']]
    """
    for text in (source, _MAGIC.sub(r"\1pass", source)):
        try:
            binds, reads = _names(symtable.symtable(text, "<cell>", "exec"))
            return CellNames(frozenset(binds), frozenset(reads - binds))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _names(table: symtable.SymbolTable, *, top: bool = True) -> tuple[set[str], set[str]]:
    """The notebook's names that a scope and those inside it bind, and that they refer to."""
    binds, reads = set[str](), set[str]()
    for symbol in table.get_symbols():
        made = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        if made and (top or symbol.is_declared_global()):
            binds.add(symbol.get_name())
        # A class that binds a name may read the notebook's before it does.
        if symbol.is_referenced() and (top or symbol.is_global() or table.get_type() == "class"):
            reads.add(symbol.get_name())
    for child in table.get_children():
        inner = _names(child, top=False)
        binds |= inner[0]
        reads |= inner[1]
    return binds, reads
