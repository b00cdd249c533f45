"""Ranks that compute with real tensors in one process: one after the other, and again when a sum has come together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

UNEQUAL_PARTS = "parts of different shapes"  # in the reason of `run_in_turn`, where the ranks' tensors do not match
_MOST_ROUNDS = 40  # collectives of a rank: no sound answer has more than a few


class NotYet(BaseException):
    """A rank has come to a sum for which other ranks have not given their part: it runs again later."""


class TurnComm:
    """One rank's side of collectives: `all_reduce(tensor)` gives the sum over all ranks, as a new tensor.

    `all_gather(tensor)` gives the list of all ranks' tensors. As in torch.distributed, autograd does not see what goes
    through either.
    """

    def __init__(self, rank: int, size: int, known: list[Any]) -> None:
        self.rank, self.size = rank, size
        self.given: list[Any] = []
        self.names: list[str] = []
        self.dtypes: list[str] = []
        self.phases: list[str] = []
        self.phase = "forward"
        self._known = known

    def all_reduce(self, tensor: Any) -> Any:
        """The sum of every rank's `tensor`, element by element."""
        parts = self._parts("all_reduce", tensor)
        return sum(parts[1:], parts[0]).to(tensor.dtype).clone()

    def all_gather(self, tensor: Any) -> list[Any]:
        """Every rank's `tensor`, in order; all have one shape."""
        return [part.clone() for part in self._parts("all_gather", tensor)]

    def _parts(self, name: str, tensor: Any) -> list[Any]:
        at = len(self.given)
        self.given.append(tensor.detach().clone())
        self.dtypes.append(str(tensor.dtype).removeprefix("torch."))
        self.names.append(name)
        self.phases.append(self.phase)
        if at >= len(self._known):
            raise NotYet
        parts: list[Any] = self._known[at]
        return parts


def run_in_turn(size: int, program: Callable[[TurnComm], Any]) -> tuple[list[Any], list[TurnComm], str]:
    """What `program(comm)` returns on every rank, their sides, and why they do not come to an end ("" if they do).

    Ranks run one after the other; where a sum is not known yet, all run again with one more.
    """
    known: list[Any] = []
    for _ in range(_MOST_ROUNDS):
        comms = [TurnComm(rank, size, known) for rank in range(size)]
        results = [_attempt(program, comm) for comm in comms]
        if all(done for done, _ in results):
            return [result for _, result in results], comms, ""
        at = len(known)
        there = [comm for comm in comms if len(comm.given) > at]
        if len(there) < size:
            ended = [comm.rank for comm in comms if len(comm.given) <= at]
            return (
                [],
                comms,
                f"rank {ended[0]} has ended, but other ranks wait for it in call {at} ({there[0].names[at]})",
            )
        parts, names = [comm.given[at] for comm in there], [comm.names[at] for comm in there]
        if len(set(names)) > 1:
            return [], comms, f"call {at} is {' on one rank and '.join(sorted(set(names)))} on another"
        if len({tuple(part.shape) for part in parts}) > 1:
            shapes = ", ".join(str(tuple(part.shape)) for part in parts)
            done = "adds" if names[0] == "all_reduce" else "gathers"
            return [], comms, f"call {at} ({names[0]}) {done} {UNEQUAL_PARTS}: {shapes}"
        known.append(parts)
    return [], comms, f"the ranks make more than {_MOST_ROUNDS} collective calls"


def _attempt(program: Callable[[TurnComm], Any], comm: TurnComm) -> tuple[bool, Any]:
    try:
        return True, program(comm)
    except NotYet:
        return False, None


def listed(tensor: Any) -> list[float]:
    """The elements of a tensor as floats; none of None."""
    return [] if tensor is None else [float(value) for value in tensor.detach().double().flatten()]


def unreadable(got: list[float], count: int) -> str:
    """Why numbers cannot be compared with `count` others; empty where they can."""
    if len(got) != count:
        return f"has {len(got)} values, not {count}"
    odd = next((value for value in got if not math.isfinite(value)), None)
    return "" if odd is None else f"contains {odd}"


def distance(got: list[float], want: list[float]) -> float:
    """How far `got` is from `want`, as a share of its length if it has one; infinite where the sizes differ."""
    if len(got) != len(want) or not all(map(math.isfinite, got)):
        return math.inf
    size = math.sqrt(sum(value * value for value in want))
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want, strict=True))) / (size or 1.0)
