"""A loop before and after one change, recorded into two small files that a grader can read on another machine."""

from __future__ import annotations

import inspect
import json
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from edl_labs.arguments import checked_arguments, require_amount
from edl_labs.device import describe
from edl_labs.errors import UsageError
from edl_labs.trace._read_trace import read_trace
from edl_labs.trace.analysed_trace import AnalysedTrace, step_times_s
from edl_labs.trace.loops import TorchLoop, recorded_by_profiler
from edl_labs.trace.packed_trace import FILES, LEAST_STEPS, packed, scrubber
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted, seconds
from edl_labs.values import Value

_ROUNDS = 3  # on a busy machine 8 loops lost half a point in 7 of 48 pairs; with three rounds 6 of them in none of 120
_SOURCE_LETTERS = 20_000  # a loop of 400 lines


@dataclass(frozen=True, repr=False)
class HandedIn(Value):
    """The two files that `hand_in` wrote. `step_s` are the median seconds of a step, before and after.

    A step of a GPU ends when the device is done with it, however far the host has run ahead."""

    ROWS: ClassVar[str] = "files"
    name: str
    device: str
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    step_s: tuple[float, ...]

    def __str__(self) -> str:
        rows = zip(self.files, self.sizes, self.steps, self.step_s, strict=True)
        lines = [f"{f}: {size / 1e3:.0f} kB, {counted(n, 'step')} of {seconds(t)}" for f, size, n, t in rows]
        return "\n".join([f"{self.name}, recorded on {self.device}. Hand in both files with the notebook:", *lines])


@checked_arguments()
def hand_in(
    before: Any,
    after: Any,
    *,
    name: str = "own loop",
    steps: int = 10,
    folder: str | Path = ".",
) -> HandedIn:
    """Record `before` and `after`, each a `TorchLoop` or a step function, into two files for your grader.

    `own_before.json.gz` and `own_after.json.gz` in `folder` hold a trace of `steps` steps with input shapes, the
    machine's environment stamp and the loop's source. Home paths, user and host names are removed. A file of more than
    5 MB keeps fewer steps, at least four. The warm-up of each loop is not recorded. On a device that torch.profiler
    cannot record (MPS), the file holds the CPU's side and the times of the steps, measured by a synchronised clock.
    Both are recorded three times in turn, and of each the recording with the shortest median step is kept: a program
    that ran meanwhile made the others slower.
    """
    require_amount(steps=steps)
    if steps < LEAST_STEPS:
        raise UsageError(
            f"steps must be at least {LEAST_STEPS}, got {steps}",
            why="the first step is a warm-up, and computing shares needs three more steps",
            next="use, for example, hand_in(before, after, steps=10)",
        )
    pair, place = uuid.uuid4().hex, Path(folder)
    loops = tuple(as_torch_loop(loop) for loop in (before, after))
    rounds = [
        [_recorded(loop, steps, which, name, pair) for loop, which in zip(loops, ("before", "after"), strict=True)]
        for _ in range(_ROUNDS)
    ]
    found = [min(recordings, key=lambda one: one[-1]) for recordings in zip(*rounds, strict=True)]
    for file, (data, _, _) in zip(FILES, found, strict=True):
        (place / file).write_bytes(data)
    sizes, counts, times = zip(*((len(data), count, step_s) for data, count, step_s in found), strict=True)
    return HandedIn(name, describe(loops[0].device).device_name, FILES, sizes, counts, times)


def as_torch_loop(loop: Any) -> TorchLoop:
    """A TorchLoop from itself, or from a function that runs one step; UsageError for anything else."""
    if isinstance(loop, TorchLoop):
        return loop
    if not callable(loop) or inspect.signature(loop).parameters:
        raise UsageError(
            f"cannot record {type(loop).__name__} as a loop",
            why="a loop must be a TorchLoop, or a function without arguments that runs one step",
            next="pass, for example, trace.TorchLoop(step, data=batches, device=...)",
        )
    return TorchLoop(loop, name=getattr(loop, "__name__", "loop"))


def _recorded(loop: TorchLoop, steps: int, which: str, name: str, pair: str) -> tuple[bytes, int, float]:
    """The bytes of one file, how many steps it keeps, and the median seconds a step."""
    seen = _Shapes()
    watched = loop if loop.data is None else replace(loop, data=_Watched(loop.data, seen))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        sampled = watched.record_to(path, steps, record_shapes=True)
        tree, trace = json.loads(path.read_text(encoding="utf-8")), read_trace(path)
    kind = loop.device.split(":")[0]
    timed_s = None if kind in recorded_by_profiler() else loop.times_s(steps, (None,))[None]
    about = {
        "schema": 1,
        "which": which,
        "name": name,
        "pair": pair,
        "warm_up": loop.warm_up,
        "input_shapes": seen.shapes,
        "timed_step_s": timed_s,
        "stamp": describe(loop.device).to_json(),
        "source": _source(loop.step),
    }
    return (*packed(tree, about, sampled, scrub=scrubber()), step_s(trace) if timed_s is None else timed_s)


def step_s(trace: Trace) -> float:
    """The median seconds of a recorded step, the first one left out; a step ends when the device is done with it."""
    return median(step_times_s(AnalysedTrace(trace).step_bounds(skip=1)))


def _source(step: Callable[..., Any]) -> str:
    """The source of a step; '' where Python does not know it."""
    try:
        return inspect.getsource(inspect.unwrap(step))[:_SOURCE_LETTERS]
    except (OSError, TypeError):
        return ""


class _Shapes:
    """The shapes of the tensors in the batches of a loop, one list for each different batch, in order."""

    def __init__(self) -> None:
        self.shapes: list[list[list[int]]] = []

    def note(self, batch: Any) -> None:
        import torch
        from torch.utils._pytree import tree_leaves

        found = [list(leaf.shape) for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
        # Ragged batches have many; as many as can be compared by eye.
        if found not in self.shapes and len(self.shapes) < 16:
            self.shapes.append(found)


@dataclass(frozen=True)
class _Watched:
    """Data whose batches are noted as they are asked for."""

    data: Iterable[Any]
    seen: _Shapes

    def __iter__(self) -> Iterator[Any]:
        for batch in self.data:
            self.seen.note(batch)
            yield batch
