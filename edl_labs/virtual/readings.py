"""What a replay makes of a reading: it has to be the recorded one, and says what was true of the machine then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import EdlError
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError


@dataclass(frozen=True)
class Reading:
    """One reading of a program: what it returned, and what was true of the machine at that moment.

    `host_s` is the exact virtual time; `drained` says that the device had finished all that was issued; `launches` is
    the number of kernels issued before.
    """

    index: int
    op: str
    value: Any
    host_s: float
    drained: bool
    launches: int


def require_same(index: int, entry: Mapping[str, Any], value: Any) -> None:
    """ReplayDisagreement unless what the operation recorded is the replayed value, of the same type."""
    recorded = entry["value"]
    if type(recorded) is not type(value) or recorded != value:
        raise ReplayDisagreement(index=index, operation=entry["op"], recorded=recorded, replayed=value)


def impossible(index: int, error: EdlError) -> ReplayError:
    """The error for an operation of the right form that the machine refuses."""
    return ReplayError(f"operation {index} of the program cannot be: {error.what}", why=error.why, next=error.next)
