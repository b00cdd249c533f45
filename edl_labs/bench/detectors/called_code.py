"""What the code of a function says by itself: which attributes it calls, and whether it drops a value."""

from __future__ import annotations

import dis
import os
import sys
import types
from itertools import pairwise
from typing import Any

from edl_labs.bench.timing.reachable_objects import reachable

_DROPPED = {"BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP", "UNARY_NEGATIVE", "BINARY_SLICE"}
_COMPILERS = {("torch", "compile"), ("jit", "script"), ("jit", "trace")}


def drops_a_value(fn: Any) -> str:
    """The operator whose value the code of `fn` drops on a line of its own, or ''."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return ""
    before = None
    for step in dis.get_instructions(code):
        if step.opname == "POP_TOP" and before is not None and before.opname in _DROPPED:
            return "its code computes a value and drops it"
        if step.opname != "CACHE":
            before = step
    return ""


def calls_by_name(roots: tuple[Any, ...], name: str) -> bool:
    """Whether code that `roots` can reach calls something called `name` as an attribute."""
    return any(step.argval == name for _, step in _attribute_steps(roots))


def compiles(roots: tuple[Any, ...]) -> bool:
    """Whether code that `roots` can reach calls torch.compile, torch.jit.script or torch.jit.trace."""
    return any((before.argval, step.argval) in _COMPILERS for before, step in _attribute_steps(roots))


def _attribute_steps(roots: tuple[Any, ...]) -> list[tuple[dis.Instruction, dis.Instruction]]:
    found = []
    for item in reachable(*roots):
        if isinstance(item, types.FunctionType) and not _foreign(item):
            found += _steps(item.__code__)
    return found


def _steps(code: types.CodeType) -> list[tuple[dis.Instruction, dis.Instruction]]:
    steps = list(dis.get_instructions(code))
    pairs = [(a, b) for a, b in pairwise(steps) if b.opname in ("LOAD_ATTR", "LOAD_METHOD")]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            pairs += _steps(constant)
    return pairs


def _foreign(fn: types.FunctionType) -> bool:
    # Code of installed packages may synchronise for reasons of its own that the caller cannot take out.
    file = fn.__code__.co_filename
    return "site-packages" in file or file.startswith(sys.base_prefix + os.sep + "lib") or "dist-packages" in file
