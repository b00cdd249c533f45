"""`feed`: a DataLoader whose every wait has a limit, and whose failures name the sample."""

from __future__ import annotations

import atexit
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, cast

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError, UsageError
from edl_labs.pipeline._within import TookTooLong, too_long, within
from edl_labs.pipeline.worker_notes import NONE, NOTES, Failure, NotingCollate, Watched


class WorkerDied(EdlError):
    """A worker of a loader ended without a word; `samples` are those that workers were busy with."""

    def __init__(self, what: str, *, samples: Sequence[int], why: str, next: str) -> None:
        super().__init__(what, why=why, next=next)
        self.samples = tuple(samples)


# How long a wait for workers lasts before they are looked at, and how long they may take to end by themselves.
_LOOK_S, _GRACE_S = 0.25, 1.0
_END = object()


@checked_arguments()
def feed(
    dataset: Any,
    *,
    batch_size: int | None = None,
    batches: Iterable[Sequence[int]] | None = None,
    workers: int = 0,
    prefetch: int = 2,
    collate: Callable[[Any], Any] | None = None,
    limit_s: float = 60.0,
    start_method: str | None = None,
    pin_memory: bool = False,
    ahead: bool = False,
    nice: int = 0,
) -> Iterator[Any]:
    """Batches of `dataset` from torch's DataLoader: in order by `batch_size`, or as `batches` (lists of numbers) says.

    With `ahead`, a thread takes the next batch from the workers while the caller works on this one, which hides the
    hand-over behind a step that leaves the interpreter free. Workers add `nice` to their niceness (0 to 19, not on
    Windows), so that a training process that wants a core gets it from them.

    A batch that does not come within `limit_s` is TookTooLong, a worker that dies is WorkerDied, within a second; both
    name the samples that workers were busy with. An error of a sample's own code comes through, with a note of its
    number. Workers start with the first batch, from the thread that asks for it, and end with the iterator.
    """
    import torch
    from torch.utils.data import DataLoader

    if (
        workers < 0
        or prefetch < 1
        or (batch_size is not None and batch_size < 1)
        or not 0 <= nice <= 19
        or (batches is None) == (batch_size is None)
    ):
        raise UsageError(
            f"cannot run feed(batch_size={batch_size}, workers={workers}, prefetch={prefetch}, nice={nice})",
            why="feed() needs workers >= 0, prefetch >= 1, nice from 0 to 19, and either batch_size >= 1 or `batches`",
            next="call, for example, feed(dataset, batch_size=32, workers=2)",
        )
    context = torch.multiprocessing.get_context(start_method or ("fork" if _can_fork() else "spawn"))
    notes = context.Array("q", [NONE, 0, 0] * max(1, workers), lock=False)
    plan = None if batches is None else list(batches)
    loader: Any = DataLoader(
        cast(Any, Watched(dataset, notes)),
        **({"batch_sampler": plan} if plan is not None else {"batch_size": batch_size}),
        num_workers=workers,
        prefetch_factor=prefetch if workers else None,
        collate_fn=NotingCollate(collate, notes),
        timeout=min(limit_s, _LOOK_S) if workers else 0,
        multiprocessing_context=context if workers else None,
        pin_memory=pin_memory,
        worker_init_fn=partial(_stand_back, nice) if workers and nice else None,
    )

    def samples(number: int) -> Sequence[int]:
        if plan is not None:
            return plan[number]
        begin = number * cast(int, batch_size)
        return range(begin, min(begin + cast(int, batch_size), len(dataset)))

    source = _Source(loader, notes, samples, limit_s)
    return _one_ahead(source) if ahead else _in_turn(source)


def _stand_back(nice: int, worker: int) -> None:
    if hasattr(os, "nice"):
        os.nice(nice)


def _in_turn(source: _Source) -> Iterator[Any]:
    try:
        source.begin()
        for number in count():
            batch = source.awaited(number, lambda: within(source.patience_s, source.take, what="the next batch"))
            if batch is _END:
                return
            yield batch
            del batch
    finally:
        source.end()


def _one_ahead(source: _Source) -> Iterator[Any]:
    taker = _Taker(source.take)
    try:
        source.begin()
        taker.ask()
        for number in count():
            batch = source.awaited(number, lambda: taker.answer(source.patience_s))
            if batch is _END:
                return
            taker.ask()
            yield batch
            del batch
    finally:
        source.closing = True
        taker.close()
        source.end()


class _Taker:
    """A thread that takes the next batch whenever it is asked to. One that hangs is left behind."""

    def __init__(self, take: Callable[[], Any]) -> None:
        self._take, self._closing = take, False
        self._asked = threading.Semaphore(0)
        self._answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="feed", daemon=True)

    def ask(self) -> None:
        if not self._thread.is_alive():
            self._thread.start()
            # An interpreter that ends must not find it at work.
            atexit.register(self.close)
        self._asked.release()

    def answer(self, limit_s: float) -> Any:
        try:
            good, value = self._answers.get(timeout=limit_s)
        except queue.Empty:
            raise too_long("the next batch", limit_s) from None
        if not good:
            raise value
        return value

    def close(self) -> None:
        self._closing = True
        self._asked.release()
        atexit.unregister(self.close)
        if self._thread.ident is not None:
            self._thread.join(2 * _LOOK_S + _GRACE_S)

    def _work(self) -> None:
        while self._asked.acquire() and not self._closing:
            try:
                self._answers.put((True, self._take()))
            except BaseException as error:
                self._answers.put((False, error))


class _Source:
    """The batches of a DataLoader, awaited in short slices so that a dead worker is noticed, from any thread."""

    def __init__(self, loader: Any, notes: Any, samples: Callable[[int], Sequence[int]], limit_s: float) -> None:
        self.loader, self.notes, self.samples, self.limit_s = loader, notes, samples, limit_s
        self.iterator: Any = None
        self.closing = False
        # With workers the wait in `take` ends first; this is for a message of which a dead worker wrote a part only.
        self.patience_s = limit_s * 1.5 + 1 if loader.num_workers else limit_s

    def begin(self) -> None:
        """Start the workers."""
        from torch.utils.data import _utils

        self.iterator = iter(self.loader)
        # torch would raise a worker's death in whatever the main thread does at that time; here `take` looks for it.
        if getattr(self.iterator, "_worker_pids_set", False):
            _utils.signal_handling._remove_worker_pids(id(self.iterator))
            self.iterator._worker_pids_set = False

    def take(self) -> Any:
        """The next batch, or _END."""
        end = time.monotonic() + self.limit_s
        while True:
            try:
                return next(self.iterator, _END)
            except RuntimeError as error:
                if not self._timed_out(error) or self.closing or time.monotonic() >= end:
                    raise

    def awaited(self, number: int, get: Callable[[], Any]) -> Any:
        """What `get` returns as batch `number`, with its errors explained."""
        try:
            batch = get()
        except Exception as error:
            explained = self._explained(error, number)
            if explained is error:
                raise
            raise explained from error
        if isinstance(batch, Failure):
            raise batch.error
        return batch

    def end(self) -> None:
        """End the workers; one that is in the middle of a sample gets a moment for it."""
        self.closing = True
        workers = list(self._workers())
        if not workers:
            return
        timer = threading.Timer(_GRACE_S, _terminate, [workers])
        timer.daemon = True
        timer.start()
        try:
            with suppress(RuntimeError):
                self.iterator._shutdown_workers()
        finally:
            timer.cancel()
            timer.join()
        # Threads that feed the queues of workers end by themselves, a little later.
        for waiting in getattr(self.iterator, "_index_queues", ()):
            feeder = getattr(waiting, "_thread", None)
            if feeder is not None:
                feeder.join(_GRACE_S)

    def _workers(self) -> Sequence[Any]:
        return getattr(self.iterator, "_workers", ())

    def _timed_out(self, error: BaseException) -> bool:
        return bool(self._workers()) and str(error).startswith("DataLoader timed out")

    def _explained(self, error: BaseException, number: int) -> BaseException:
        first = (str(error).splitlines() or [""])[0]
        if first.startswith("Caught ") and "in DataLoader worker process" in first:
            return error
        slow = isinstance(error, TookTooLong) or self._timed_out(error)
        dead = self._dead(0.0 if slow else _GRACE_S)
        busy = sorted(sample for worker in range(len(self.notes) // NOTES) for sample in self._busy(worker, dead))
        names = ", ".join(map(str, busy[:16])) + (", ..." if len(busy) > 16 else "") or "none"
        if dead:
            what = f"a worker died while it prepared batch {number}; the workers were busy with sample {names}"
            return WorkerDied(what, samples=busy, **_ending(dead))
        if slow:
            return TookTooLong(
                f"batch {number} did not arrive within {self.limit_s:g} s; the workers were busy with sample {names}",
                why="this sample takes too long, or its worker waits for a lock, a disk or a network",
                next="read this sample alone with workers=0, or increase limit_s",
            )
        return error

    def _dead(self, wait_s: float) -> dict[int, int]:
        """Exit codes of dead workers. A broken connection is seen before the death that broke it."""
        end = time.monotonic() + (wait_s if self._workers() else 0.0)
        while True:
            dead = {place: w.exitcode for place, w in enumerate(self._workers()) if w.exitcode is not None}
            if dead or time.monotonic() >= end:
                return dead
            time.sleep(0.02)

    def _busy(self, worker: int, dead: dict[int, int]) -> list[int]:
        """The samples that a worker is at: the one that it reads, or those of the batch that it puts together.

        A dead one may also have been at handing over a batch that it had made, which is what memory runs out at.
        """
        reads, begun, made = self.notes[NOTES * worker : NOTES * (worker + 1)]
        reading = reads != NONE
        turns = [begun - 1] if begun > made and not reading else []
        if not turns and worker in dead and (not reading or _name(dead[worker]) == "SIGBUS"):
            turns = [turn for turn in range(made) if self._is_out(worker, turn)]
        # Batches go to workers in turn.
        numbers = [worker + turn * max(1, self.loader.num_workers) for turn in turns]
        return [reads] * reading + [int(sample) for number in numbers for sample in self.samples(number)]

    def _is_out(self, worker: int, turn: int) -> bool:
        task = getattr(self.iterator, "_task_info", {}).get(worker + turn * self.loader.num_workers)
        return task is not None and len(task) == 1


def _terminate(workers: Sequence[Any]) -> None:
    for worker in workers:
        with suppress(OSError, ValueError):
            worker.terminate()


def _name(code: int) -> str:
    with suppress(ValueError):
        if code < 0:
            return signal.Signals(-code).name
    return f"exit code {code}"


def _ending(dead: dict[int, int]) -> dict[str, str]:
    """Why workers with these exit codes ended, and what to do about it."""
    names = sorted({_name(code) for code in dead.values()})
    if "SIGBUS" in names:
        return {
            "why": "it was ended by SIGBUS, usually because the shared memory for batches (/dev/shm) is full",
            "next": "give /dev/shm more space, or use fewer workers, a smaller prefetch or smaller batches",
        }
    return {
        "why": f"it was ended by {', '.join(names)}: it was killed for its memory use, or crashed in a library",
        "next": "read this sample with workers=0, and watch the memory",
    }


def _can_fork() -> bool:
    import multiprocessing

    return "fork" in multiprocessing.get_all_start_methods()
