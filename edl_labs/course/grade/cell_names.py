"""The names that cells bind and read, and the cells on which the running cells depend.

It imports nothing of the package: `bounded_call` starts a process for it with each submission.
"""

from __future__ import annotations

import re
import symtable
from collections.abc import Sequence
from typing import NamedTuple

_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)  # IPython's own lines


class CellNames(NamedTuple):
    """The names of the notebook that a cell binds, and those of other cells that it, or a function of it, reads."""

    binds: frozenset[str]
    reads: frozenset[str]


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
