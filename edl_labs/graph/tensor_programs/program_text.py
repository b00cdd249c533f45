"""A program as text: JSON with tensors by number, and everything else as plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.errors import EdlError

MOST_TEXT = 6_000_000  # bytes: twenty training steps of a small model have 2 million
MOST_OPERATORS = 50_000  # the same steps have 12,000
MOST_CONSTANTS = 4096  # elements of all constants: tables of a few numbers, not answers
MOST_DEPTH = 6  # of an argument: lists of tensors


class ProgramError(EdlError):
    """A program that cannot be recorded, read or played."""


@dataclass
class ProgramText:
    """The parts of a program; `steps` has operators, ends of tensors and the names of what begins."""

    inputs: list[list[Any]] = field(default_factory=list)
    """[name, dtype, shape], in the order of their numbers."""
    constants: list[list[Any]] = field(default_factory=list)
    """[number, dtype, shape, values]."""
    steps: list[list[Any]] = field(default_factory=list)
    """[operator, arguments, named arguments, numbers of the results, value that the host read or nothing],
    ["end", number] or ["section", name]."""
    outputs: dict[str, int] = field(default_factory=dict)

    def to_text(self) -> str:
        """The program as JSON."""
        return json.dumps(vars(self), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_text(cls, text: object) -> ProgramText:
        """The program of a text; ProgramError where it is none."""
        if not isinstance(text, str) or len(text) > MOST_TEXT:
            raise _no_program("it is not a string, or it has more than 6 MB")
        try:
            found = json.loads(text)
            made = cls(**found)
        except (ValueError, TypeError, RecursionError):
            raise _no_program("it is not the JSON of a program") from None
        if not made._has_form():
            raise _no_program("its parts have the wrong form")
        if len(made.steps) > MOST_OPERATORS:
            raise _no_program(f"it has more than {MOST_OPERATORS} operators")
        return made

    def _has_form(self) -> bool:
        return (
            all(isinstance(part, list) for part in (self.inputs, self.constants, self.steps))
            and isinstance(self.outputs, dict)
            and all(_is_number(number) for number in self.outputs.values())
            and all(isinstance(one, list) and len(one) == 3 and isinstance(one[0], str) for one in self.inputs)
            and all(isinstance(one, list) and len(one) == 4 and _is_number(one[0]) for one in self.constants)
            and all(_is_step(step) for step in self.steps)
        )


def _no_program(why: str) -> ProgramError:
    return ProgramError("This is not a recorded program.", why=why, next="run the cell again, and then the check")


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 10 * MOST_OPERATORS


def _is_step(step: object) -> bool:
    if not isinstance(step, list) or not step or not isinstance(step[0], str):
        return False
    if step[0] == "end":
        return len(step) == 2 and _is_number(step[1])
    if step[0] == "section":
        return len(step) == 2 and isinstance(step[1], str)
    return (
        len(step) == 5
        and isinstance(step[1], list)
        and isinstance(step[2], dict)
        and isinstance(step[3], list)
        and all(map(_is_number, step[3]))
    )


def plain_argument(value: Any, number_of: Callable[[Any], int]) -> Any:
    """An argument of an operator as plain data."""
    import torch

    if isinstance(value, torch.Tensor):
        return {"tensor": number_of(value)}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device | torch.layout):
        return None  # all is strided memory of the host
    if isinstance(value, list | tuple):
        return [plain_argument(one, number_of) for one in value]
    raise ProgramError(
        f"An operator has an argument of the type {type(value).__name__}.",
        why="a program may contain only tensors, numbers and lists of them",
        next="convert it to one of these before you use it",
    )


def read_argument(plain: Any, tensor_of: Callable[[int], Any], depth: int = MOST_DEPTH) -> Any:
    """What `plain_argument` was made of."""
    if isinstance(plain, list) and depth:
        return [read_argument(one, tensor_of, depth - 1) for one in plain]
    if not isinstance(plain, Mapping):
        return plain
    (kind, value), *_ = [*plain.items(), ("", None)]
    if kind == "tensor" and _is_number(value):
        return tensor_of(value)
    if kind == "float" and value in ("inf", "-inf", "nan"):
        return float(value)
    if kind in ("dtype", "memory_format"):
        return named_type(kind, value)
    raise _no_program(f"it has an argument of the kind {kind[:20]!r}")


def named_type(kind: str, name: object) -> Any:
    """The dtype or memory format of a name; ProgramError where there is none."""
    import torch

    found = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(found, torch.dtype if kind == "dtype" else torch.memory_format):
        raise _no_program(f"it names a {kind} that does not exist")
    return found


def tensors_of(value: Any) -> list[Any]:
    """The tensors of arguments or results, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [one for part in value for one in tensors_of(part)] if isinstance(value, list | tuple) else []
