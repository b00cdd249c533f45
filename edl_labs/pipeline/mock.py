"""Mock loader, mock trainer, and steps of a known cost: each side of a training loop, alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.pipeline._within import within


def mock_loader(loader: Iterable[Any], *, batches: int | None = None, limit_s: float = 60.0) -> Iterator[Any]:
    """One real batch of `loader`, again and again: what the step could do if data were free.

    As many times as the loader has batches, unless `batches` says; without end where neither is known. A first batch
    that does not come within `limit_s` is TookTooLong.

    >>> list(mock_loader([[1], [2], [3]]))
    [[1], [1], [1]]
    """
    source, nothing = iter(loader), object()
    first = within(limit_s, lambda: next(source, nothing), what="the first batch of the loader")
    if first is nothing:
        raise UsageError(
            "the loader gave no batch", why="a mock loader repeats a real one", next="check the data set's length"
        )
    if batches is None and hasattr(loader, "__len__"):
        batches = len(loader)  # type: ignore[arg-type]
    return repeat(first) if batches is None else repeat(first, batches)


def mock_trainer(batch: Any) -> None:
    """A step that drops its batch: what the loader could do if training were free."""


def sleeping_step(duration_s: float) -> Callable[[Any], None]:
    """A step on a device that takes no CPU: the caller sleeps for `duration_s`."""

    def step(batch: Any) -> None:
        time.sleep(duration_s)

    return step


def busy_step(duration_s: float, *, clock: Callable[[], float] = time.thread_time) -> Callable[[Any], None]:
    """A step on this CPU: it uses `duration_s` of processor time, longer where others want the core."""

    def step(batch: Any) -> None:
        end = clock() + duration_s
        while clock() < end:
            pass

    return step
