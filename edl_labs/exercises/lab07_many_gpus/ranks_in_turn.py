"""Ranks that compute with real tensors in one process: one after the other, and again when a sum has come together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MOST_ROUNDS = 40  # collectives of a rank: no sound answer has more than a few


class NotYet(BaseException):
    """A rank has come to a sum for which other ranks have not given their part: it runs again later."""


class TurnComm:
    """One rank's side of collectives: `all_reduce(tensor)` gives the sum over all ranks, as a new tensor.

    As in torch.distributed, autograd does not see what goes through it.
    """

    def __init__(self, rank: int, size: int, known: list[Any]) -> None:
        self.rank, self.size = rank, size
        self.given: list[Any] = []
        self.phases: list[str] = []
        self.phase = "forward"
        self._known = known

    def all_reduce(self, tensor: Any) -> Any:
        """The sum of every rank's `tensor`, element by element."""
        at = len(self.given)
        self.given.append(tensor.detach().clone())
        self.phases.append(self.phase)
        if at >= len(self._known):
            raise NotYet
        return self._known[at].to(tensor.dtype).clone()


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
        parts = [comm.given[len(known)] for comm in comms if len(comm.given) > len(known)]
        if len(parts) < size:
            ended = [comm.rank for comm in comms if len(comm.given) <= len(known)]
            return [], comms, f"rank {ended[0]} ends, and others wait for it in all_reduce {len(known)}"
        if len({tuple(part.shape) for part in parts}) > 1:
            shapes = ", ".join(str(tuple(part.shape)) for part in parts)
            return [], comms, f"all_reduce {len(known)} adds parts of shapes {shapes}"
        known.append(sum(parts[1:], parts[0]))
    return [], comms, f"there are more than {_MOST_ROUNDS} all-reduces"


def _attempt(program: Callable[[TurnComm], Any], comm: TurnComm) -> tuple[bool, Any]:
    try:
        return True, program(comm)
    except NotYet:
        return False, None
