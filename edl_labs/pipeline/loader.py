"""A DataLoader whose every wait has a limit, and whose failures name the sample; and its throughput, measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, cast

from edl_labs.errors import EdlError, UsageError
from edl_labs.pipeline.limits import TookTooLong, within


class WorkerDied(EdlError):
    """A worker of a loader ended without a word; `samples` are those that workers were busy with."""

    def __init__(self, what: str, *, samples: Sequence[int], why: str, next: str) -> None:
        super().__init__(what, why=why, next=next)
        self.samples = tuple(samples)


class _Watched:
    """A data set that notes in shared memory which sample each worker is at."""

    def __init__(self, dataset: Any, notes: Any) -> None:
        self.dataset, self.notes = dataset, notes

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, sample: int) -> Any:
        from torch.utils.data import get_worker_info

        info = get_worker_info()
        if info is not None:
            self.notes[info.id] = sample
        try:
            return self.dataset[sample]
        except EdlError as error:
            # torch would make it a RuntimeError on its way to the main process.
            return _Failure(error)
        except Exception as error:
            error.add_note(f"this happened in sample {sample} of the data set")
            raise
        finally:
            if info is not None:
                self.notes[info.id] = -1


@dataclass(frozen=True)
class _Failure:
    """An error with its three sentences, in place of a sample or of a batch."""

    error: EdlError


class _Collate:
    """The collate function, past which failures go as they are."""

    def __init__(self, collate: Callable[[Any], Any] | None) -> None:
        self.collate = collate

    def __call__(self, samples: list[Any]) -> Any:
        for sample in samples:
            if isinstance(sample, _Failure):
                return sample
        try:
            if self.collate is not None:
                return self.collate(samples)
            from torch.utils.data import default_collate

            return default_collate(samples)
        except EdlError as error:
            return _Failure(error)


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

    A batch that does not come within `limit_s` is TookTooLong, a worker that dies is WorkerDied; both name the samples
    that workers were busy with. An error of a sample's own code comes through, with a note of its number. Workers end
    with the iterator.
    """
    import torch
    from torch.utils.data import DataLoader

    if workers < 0 or prefetch < 1 or not 0 <= nice <= 19 or (batches is None) == (batch_size is None):
        raise UsageError(
            f"feed(batch_size={batch_size}, workers={workers}, prefetch={prefetch}, nice={nice})",
            why="there are 0 workers or more, a prefetch of 1 or more, a nice of 0 to 19, and a batch size or batches",
            next="feed(dataset, batch_size=32, workers=2)",
        )
    context = torch.multiprocessing.get_context(start_method or ("fork" if _can_fork() else "spawn"))
    notes = context.Array("q", [-1] * max(1, workers), lock=False)
    loader: Any = DataLoader(
        cast(Any, _Watched(dataset, notes)),
        **({"batch_sampler": list(batches)} if batches is not None else {"batch_size": batch_size}),
        num_workers=workers,
        prefetch_factor=prefetch if workers else None,
        collate_fn=_Collate(collate),
        timeout=limit_s if workers else 0,
        multiprocessing_context=context if workers else None,
        pin_memory=pin_memory,
        worker_init_fn=partial(_stand_back, nice) if workers and nice else None,
    )
    source = _guarded(loader, notes, limit_s)
    return _one_ahead(source) if ahead else source


def _stand_back(nice: int, worker: int) -> None:
    if hasattr(os, "nice"):
        os.nice(nice)


def _one_ahead(source: Generator[Any, None, None]) -> Iterator[Any]:
    end = object()
    with ThreadPoolExecutor(1, thread_name_prefix="feed") as pool:
        try:
            coming = pool.submit(next, source, end)
            while (batch := coming.result()) is not end:
                coming = pool.submit(next, source, end)
                yield batch
                del batch
        finally:
            # In its turn, after the batch that is under way: a generator that runs cannot be closed.
            pool.submit(source.close)


def _guarded(loader: Any, notes: Any, limit_s: float) -> Generator[Any, None, None]:
    iterator: Any = None
    number, nothing = 0, object()
    try:
        try:
            iterator = iter(loader)
            while True:
                # The loader's own limit comes first: it ends its workers.
                batch = within(limit_s * 1.5 + 1, lambda: next(iterator, nothing), what=f"batch {number}")
                if batch is nothing:
                    return
                if isinstance(batch, _Failure):
                    raise batch.error
                yield batch
                number += 1
        except (RuntimeError, ConnectionError, EOFError, TookTooLong) as error:
            explained = _explained(error, number, notes, limit_s)
            if explained is error:
                raise
            raise explained from error
    finally:
        if iterator is not None and hasattr(iterator, "_shutdown_workers"):
            with suppress(RuntimeError):
                iterator._shutdown_workers()


def _explained(error: BaseException, number: int, notes: Any, limit_s: float) -> BaseException:
    busy = sorted(sample for sample in notes if sample >= 0)
    names = ", ".join(map(str, busy)) or "none"
    text = str(error)
    if text.startswith("DataLoader timed out") or isinstance(error, TookTooLong):
        return TookTooLong(
            f"batch {number} did not come within {limit_s:g} s; workers were busy with sample {names}",
            why="that sample takes too long, or its worker waits for a lock, a disk or a network",
            next="read that sample with workers=0 to see it alone, or raise limit_s",
        )
    if text.startswith("DataLoader worker") or isinstance(error, (ConnectionError, EOFError)):
        return WorkerDied(
            f"a worker died while it made batch {number}; workers were busy with sample {names}",
            samples=busy,
            why=(text.splitlines() or ["its connection ended"])[0] + ": killed for its memory, or crashed in a library",
            next="read that sample with workers=0, and watch the memory",
        )
    return error


def _can_fork() -> bool:
    import multiprocessing

    return "fork" in multiprocessing.get_all_start_methods()


@dataclass(frozen=True)
class LoaderRun:
    """What a loader did: samples a second in the steady state, and the time until its first batch."""

    workers: int
    batch_size: int
    sample_per_s: float
    low_per_s: float
    high_per_s: float
    first_batch_s: float
    batches: int
    waited_share: float

    def to_json(self) -> dict[str, Any]:
        """The figures as plain data with a schema number."""
        return {"kind": "loader_run", "schema": 1, **asdict(self)}


def run_loader(
    dataset: Any,
    *,
    batch_size: int,
    workers: int,
    step: Callable[[Any], Any] | None = None,
    collate: Callable[[Any], Any] | None = None,
    seconds: float = 2.0,
    warm_batches: int | None = None,
    limit_s: float = 60.0,
    prefetch: int = 2,
    start_method: str | None = None,
) -> LoaderRun:
    """The `LoaderRun` of feeding `dataset`, again and again, to `step` (nothing unless given) for about `seconds`.

    The first batches, which fill queues and caches, do not count.
    """
    from edl_labs import stats

    if not len(dataset) or batch_size < 1:
        raise UsageError(
            f"run_loader on {len(dataset)} samples with batch_size={batch_size}",
            why="a batch holds one sample or more",
            next="give a data set that is not empty, and a batch_size of 1 or more",
        )
    warm = max(4, 2 * workers * prefetch) if warm_batches is None else warm_batches
    begin = time.perf_counter()
    source = feed(
        dataset,
        batches=_endless(len(dataset), batch_size, least=warm + 8, seconds=seconds),
        workers=workers,
        collate=collate,
        limit_s=limit_s,
        prefetch=prefetch,
        start_method=start_method,
    )
    first_s, ends, waits = _watched(source, begin, step=step, warm=warm, seconds=seconds)
    rates = _rates(ends, batch_size, max(1, workers))
    estimate = stats.median_interval(rates)
    total = (len(ends) - 1) * batch_size / (ends[-1] - ends[0])
    return LoaderRun(
        workers=workers,
        batch_size=batch_size,
        sample_per_s=total,
        low_per_s=max(0.0, min(estimate.low, total)),
        high_per_s=max(estimate.high, total),
        first_batch_s=first_s,
        batches=len(ends),
        waited_share=sum(waits[1:]) / (ends[-1] - ends[0]),
    )


def _watched(
    source: Any, begin: float, *, step: Callable[[Any], Any] | None, warm: int, seconds: float
) -> tuple[float, list[float], list[float]]:
    """Time to the first batch, and after `warm` batches the ends of steps and the waits before them."""
    ends: list[float] = []
    waits: list[float] = []
    first_s = 0.0
    try:
        last = time.perf_counter()
        for number, batch in enumerate(source):
            now = time.perf_counter()
            first_s = first_s or now - begin
            if step is not None:
                step(batch)
            if number >= warm - 1:
                ends.append(time.perf_counter())
                waits.append(now - last)
            last = time.perf_counter()
            if len(ends) > 8 and ends[-1] - ends[0] > seconds:
                break
    finally:
        source.close()
    return first_s, ends, waits


def _rates(ends: list[float], batch_size: int, workers: int) -> list[float]:
    # Workers deliver in bursts: a block holds several rounds of all of them.
    size = max(workers, (len(ends) - 1) // 12, 1)
    marks = ends[::size]
    return [size * batch_size / (b - a) for a, b in pairwise(marks) if b > a] or [0.0]


def _endless(samples: int, batch_size: int, *, least: int, seconds: float) -> list[list[int]]:
    # DataLoader wants all batches at the start; nothing real makes more than 3000 a second.
    count = least + int(3000 * seconds)
    return [[(start * batch_size + n) % samples for n in range(batch_size)] for start in range(count)]
