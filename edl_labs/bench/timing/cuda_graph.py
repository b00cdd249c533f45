"""CUDA graphs: a function captured once, whose replays are timed without launch overhead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.bench.timing.blocks import ArgumentPool
from edl_labs.clock import Clock, device_behind
from edl_labs.errors import UsageError


def captured(fn: Callable[..., Any], feed: ArgumentPool | None, clock: Clock) -> Callable[[], Any]:
    """A function that replays a CUDA graph of `fn`, one call for each set of inputs in the pool, taken in turn.

    It keeps `fn` and the inputs alive: a graph reads and writes their memory by address.

    Raises UsageError where there is no CUDA device, or where `fn` does what a graph cannot hold.
    """
    if not device_behind(clock).startswith("cuda"):
        raise UsageError(
            "graph=True needs a CUDA device",
            why=f"the clock is {clock.name}, and only CUDA captures graphs",
            next="measure without graph=True here",
        )
    import torch

    sets = feed.pool if feed is not None else [()]
    try:
        graphs = [_capture(torch, fn, arguments) for arguments in sets]
    except RuntimeError as error:
        raise UsageError(
            "this function cannot be captured as a CUDA graph",
            why=str(error).strip().splitlines()[0][:200],
            next="avoid .item(), .cpu(), prints and changing shapes in it, or measure without graph=True",
        ) from error
    return _Replays(graphs, uses=(fn, sets))


class _Replays:
    __name__ = "graph replay"

    def __init__(self, graphs: list[Any], *, uses: object) -> None:
        self._graphs, self._uses, self._turn = graphs, uses, 0

    def __call__(self) -> None:
        self._turn = (self._turn + 1) % len(self._graphs)
        self._graphs[self._turn].replay()


def _capture(torch: Any, fn: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    # Lazy initialisation (cuBLAS handles, autotuning) must be over before a capture begins, and on another stream.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            fn(*arguments)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn(*arguments)
    return graph
