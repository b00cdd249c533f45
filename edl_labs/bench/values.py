"""The small frozen values that a measurement is made of, and their way to JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from edl_labs.clock import Clock
from edl_labs.device import Device
from edl_labs.errors import EdlError, UsageError


@dataclass(frozen=True)
class Mistake:
    """A mistake in how something is timed: what it is, why it matters, what to do next. `kind` is for programs."""

    kind: str
    what: str
    why: str
    next: str

    def __str__(self) -> str:
        return str(EdlError(self.what, why=self.why, next=self.next))


@dataclass(frozen=True)
class ClockFacts:
    """Which clock was used and how far it may be trusted."""

    name: str
    resolution_s: float
    read_cost_s: float
    trust: str

    @classmethod
    def of(cls, clock: Clock, *, asynchronous: bool) -> ClockFacts:
        """The facts that a clock states about itself."""
        waits = "waits for its device at both ends of a block" if asynchronous else "the processor's own work only"
        return cls(str(clock.name), float(clock.resolution_s), float(clock.read_cost_s), waits)


def as_tree(value: Any) -> Any:
    """Plain JSON data of a frozen value: infinities and NaN, which JSON lacks, become their names."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): as_tree(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_tree(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return as_tree(asdict(value))
    return value


def number(value: Any) -> float:
    """A float that `as_tree` wrote."""
    return float(value)


def read_tree(text_or_tree: str | Mapping[str, Any], *, kind: str, schema: int) -> dict[str, Any]:
    """The tree of a result of this `kind` and schema; UsageError, saying what it is instead, for anything else."""
    try:
        tree = json.loads(text_or_tree) if isinstance(text_or_tree, str) else dict(text_or_tree)
    except (ValueError, TypeError) as error:
        raise _not(kind, str(error)) from None
    if not isinstance(tree, dict) or tree.get("kind") != kind:
        raise _not(kind, f"its kind is {tree.get('kind')!r}" if isinstance(tree, dict) else "it is no JSON object")
    if tree.get("schema") != schema:
        raise _not(kind, f"its schema is {tree.get('schema')!r}, and this version reads {schema}")
    return tree


def rebuilt(build: Any, *, kind: str) -> Any:
    """What `build()` returns; UsageError where the tree lacks a part or holds a wrong one."""
    try:
        return build()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not(kind, f"{type(error).__name__}: {error}") from error


def stamp_from(tree: Mapping[str, Any] | None) -> Device | None:
    """The environment stamp of a tree, if it has one."""
    return None if tree is None else Device.from_dict(tree)


def _not(kind: str, why: str) -> UsageError:
    return UsageError(f"this is no {kind} in JSON", why=why, next=f"write one with .to_json() of a {kind}")
