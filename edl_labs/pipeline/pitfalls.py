"""What goes wrong with loader workers, made visible: start methods, __main__, seeds, lists, shared memory, cores."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.pipeline._feed import feed
from edl_labs.units import byte_count
from edl_labs.values import Value

_SHARED = Path("/dev/shm")


@checked_arguments()
def start_cost_s(method: str, *, imports: str = "torch", limit_s: float = 60.0) -> float:
    """Seconds from asking for a worker to its first line of work, its imports included, with 'fork' or 'spawn'.

    A forked worker has what its parent imported; a spawned one is a new interpreter that imports it all again.
    """
    if method not in multiprocessing.get_all_start_methods():
        raise UsageError(
            f"there is no start method {method!r} here",
            why=f"this system has {', '.join(multiprocessing.get_all_start_methods())}",
            next="choose one of these",
        )
    for module in imports.split(","):
        __import__(module)
    context: Any = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    begin = time.perf_counter()
    child = context.Process(target=_arrive, args=(queue, imports), daemon=True)
    child.start()
    child.join(limit_s)
    if child.exitcode != 0:
        child.kill()
        raise UsageError(
            f"a worker did not start with {method}",
            why=f"it failed, or did not finish within {limit_s:g} s (exit code {child.exitcode})",
            next="run the same code in a separate script to see the worker's error",
        )
    return float(queue.get() - begin)


def _arrive(queue: Any, imports: str) -> None:
    for module in imports.split(","):
        __import__(module)
    queue.put(time.perf_counter())


@dataclass(frozen=True)
class MainOutcome:
    """What became of a data set that was defined in `__main__` with a start method, and the worker's own words."""

    method: str
    works: bool
    message: str


_IN_MAIN = """
import multiprocessing, sys
class Numbers:
    def __getitem__(self, sample): return sample * 2
def work(dataset, queue): queue.put(dataset[21])
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    child = context.Process(target=work, args=(Numbers(), queue), daemon=True)
    child.start(); child.join(30)
    print(queue.get() if child.exitcode == 0 else "", flush=True)
"""


@checked_arguments()
def main_dataset(method: str, *, limit_s: float = 60.0) -> MainOutcome:
    """The `MainOutcome` of a data set defined in a `__main__` without a file, as in a notebook's cells.

    A forked worker has the class in its memory. A spawned one gets it by name, imports `__main__` anew, and does not
    find it there. One that says nothing within `limit_s` does not work either.
    """
    # A program from stdin has no file that a new interpreter could import, as a notebook has none.
    words = [sys.executable, "-", method]
    try:
        done = subprocess.run(words, input=_IN_MAIN, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return MainOutcome(method, False, f"it did not finish within {limit_s:g} s")
    lines = [line for line in done.stderr.splitlines() if "Error" in line]
    works = done.stdout.strip() == "42"
    return MainOutcome(method, works, "" if works else (lines[-1] if lines else done.stderr[-200:]))


class _Random:
    """A data set of random numbers, from a generator of its own (`shared`) or from numpy's of the worker."""

    def __init__(self, source: str) -> None:
        import numpy as np

        self.source, self.generator = source, np.random.default_rng(0)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, sample: int) -> float:
        import numpy as np
        import torch

        if self.source == "shared":
            return float(self.generator.random())
        if self.source == "worker":
            return float(np.random.default_rng([torch.initial_seed(), sample]).random())
        return float(np.random.default_rng([0, sample]).random())


@dataclass(frozen=True, repr=False)
class SeedReport(Value):
    """How many of an epoch's random numbers are different, within one epoch and across two."""

    source: str
    workers: int
    drawn: int
    different: int
    repeated_next_epoch: int


@checked_arguments()
def seed_report(source: str, *, workers: int = 2, limit_s: float = 60.0) -> SeedReport:
    """The `SeedReport` of two epochs with `source`: 'shared', 'worker' or 'sample'.

    'shared': a generator made in the data set, which each worker gets a copy of, so that all draw the same numbers, in
    every epoch again. 'worker': seeded from torch.initial_seed(), which differs by worker and epoch. 'sample': from the
    sample's number alone, the same in every epoch.
    """
    if source not in ("shared", "worker", "sample"):
        raise UsageError(
            f"{source!r} is not a source of random numbers",
            why="the sources are 'shared', 'worker' and 'sample'",
            next="choose one of these",
        )
    epochs = []
    for _ in range(2):
        batches = feed(_Random(source), batch_size=8, workers=workers, limit_s=limit_s)
        epochs.append([float(value) for batch in batches for value in batch])
    first, second = epochs
    return SeedReport(source, workers, len(first), len(set(first)), len(set(first) & set(second)))


@checked_arguments()
def private_growth_bytes(items: Sequence[Any], *, limit_s: float = 60.0) -> int:
    """How much memory of its own a forked worker takes for only reading all `items`, which it shared at first.

    Reading a Python object counts a reference in it, which writes to its page, which copies it. An array of numbers has
    one object for all. Linux only.
    """
    if not Path("/proc/self/smaps_rollup").exists() or "fork" not in multiprocessing.get_all_start_methods():
        raise UsageError(
            "private memory cannot be read here",
            why="it is read from /proc, which only Linux has",
            next="run this cell on Linux",
        )
    context = multiprocessing.get_context("fork")
    queue: Any = context.SimpleQueue()

    def read_all() -> None:
        import gc

        gc.disable()
        before = _private_bytes()
        for item in items:
            held = item
        del held
        queue.put(_private_bytes() - before)

    child = context.Process(target=read_all, daemon=True)
    child.start()
    child.join(limit_s)
    if child.exitcode != 0:
        child.kill()
        raise UsageError("the worker did not finish", why=f"the limit was {limit_s:g} s", next="pass fewer items")
    return max(0, int(queue.get()))


def _private_bytes() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))


@dataclass(frozen=True, repr=False)
class SharedMemory(Value):
    """How much shared memory a loader's queue needs, and how much there is."""

    DERIVED = ("fits",)

    needed_bytes: int
    free_bytes: int | None
    total_bytes: int | None

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None if this system does not report it."""
        return None if self.free_bytes is None else self.needed_bytes <= self.free_bytes

    def __str__(self) -> str:
        room = "the free space is unknown" if self.free_bytes is None else f"{byte_count(self.free_bytes)} free"
        return f"the queue needs up to {byte_count(self.needed_bytes)} of shared memory; {room}"


@checked_arguments()
def shared_memory(batch_bytes: int, *, workers: int, prefetch: int = 2) -> SharedMemory:
    """The `SharedMemory` of a loader: `prefetch` batches for each worker, one in the making each, and one in use.

    Containers often give /dev/shm 64 MB: then workers die of a bus error when a batch does not fit.
    """
    if batch_bytes < 0 or workers < 0 or prefetch < 1:
        raise UsageError(
            "batch_bytes, workers or prefetch is out of range",
            why="the arguments describe the queue of a loader",
            next="pass 0 or more bytes per batch, 0 or more workers, and prefetch >= 1",
        )
    needed = batch_bytes * (workers * (prefetch + 1) + 1) if workers else 0
    usage = shutil.disk_usage(_SHARED) if _SHARED.is_dir() else None
    return SharedMemory(needed, None if usage is None else usage.free, None if usage is None else usage.total)
