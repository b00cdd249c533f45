"""The parameters of a kernel with the values of a call."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from edl_labs.virtual.tiles.kernel_source import KernelFunction
from edl_labs.virtual.tiles.program import Symbol
from edl_labs.virtual.tiles.tile_errors import refuse


def bind(
    function: KernelFunction, given: list[Any], named: dict[str, Any], value_of: Callable[[ast.expr], Any]
) -> dict[str, Any]:
    """The parameters of a function with their values."""
    scope = dict(zip(function.parameters, given, strict=False))
    wrong = [name for name in named if name in scope or name not in function.parameters]
    if len(given) > len(function.parameters) or wrong:
        extra = f"no parameter `{wrong[0][:40]}` that can be passed by name here" if wrong else "fewer parameters"
        raise refuse(
            f"`{function.name}` has {extra}.", next=f"pass only these parameters: ({', '.join(function.parameters)})"
        )
    scope |= named
    for name in function.parameters:
        if name not in scope and name in function.defaults:
            scope[name] = value_of(function.defaults[name])
    missing = [name for name in function.parameters if name not in scope]
    if missing:
        raise refuse(f"`{function.name}` needs `{missing[0]}`.", next="pass a value for it")
    for name in sorted(function.constants):
        if isinstance(scope[name], Symbol):
            raise refuse(f"`{name}` is a constexpr, but its value is known only at run time.", next="pass a number")
    return {name: scope[name] for name in function.parameters}
