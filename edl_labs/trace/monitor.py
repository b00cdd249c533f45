"""Always on: a few clock readings a step tell where a loop's time goes, at well under one per cent of it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from edl_labs.clock import Clock, HostClock
from edl_labs.errors import UsageError
from edl_labs.units import counted, percent, seconds
from edl_labs.values import Value

_READS = ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__")
PARTS = ("data", "reads", "rest")


@dataclass(frozen=True, repr=False)
class MonitorReport(Value):
    """Shares of wall time (they sum to 1): waiting for data, reading a device's numbers, and the rest.

    `intervals` are bootstrap intervals over steps at 95 %; `lines` counts the reads by Python line, a step's worth.
    """

    steps: int
    step_s: float
    shares: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    lines: dict[str, float]

    @property
    def verdict(self) -> str:
        """What the always-on mode can tell: data-bound, held up by reads, or neither (then diagnose tells more)."""
        for part, words in (("data", "data-bound"), ("reads", "waits for the device in reads")):
            if self.intervals[part][0] > 0.25:
                return words
        return "neither data nor reads: record a few steps with diagnose()"

    def __str__(self) -> str:
        told = ", ".join(f"{part} {percent(share, digits=2)}" for part, share in self.shares.items())
        lines = [f"{self.verdict}: {seconds(self.step_s)} a step over {self.steps} steps; {told}"]
        lines += [f"  {count:.1f} reads a step at {line}" for line, count in self.lines.items()]
        return "\n".join(lines)


class Monitor:
    """Wrap the loader, and a loop is watched: `with Monitor() as watch: for batch in watch(loader): ...`.

    One step costs a handful of clock readings, and each read of a device's number one more pair; nothing synchronises.
    `reads_of`: the devices whose reads count; on a CPU a read waits for nobody.
    """

    def __init__(self, *, clock: Clock | None = None, reads_of: tuple[str, ...] = ("cuda", "xpu", "mps")) -> None:
        self._clock = clock or HostClock()
        self._now = self._clock.now_s
        self._reads_of = reads_of
        self._step_s: list[float] = []
        self._data_s: list[float] = []
        self._read_s: list[float] = []
        self._reading_s = 0.0
        self._inside = False
        self._lines: Counter[tuple[str, int, str]] = Counter()
        self._kept: dict[str, Any] = {}

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches, each step of the loop over them watched."""
        now = self._now
        iterator = iter(batches)
        begun = now()
        while True:
            self._reading_s = 0.0
            try:
                batch = next(iterator)
            except StopIteration:
                return
            # A read inside the loader is a read, not a wait for data.
            data_s = now() - begun - self._reading_s
            yield batch
            ended = now()
            self._data_s.append(data_s)
            self._step_s.append(ended - begun)
            self._read_s.append(self._reading_s)
            begun = ended

    def __enter__(self) -> Monitor:
        if self._kept:
            raise UsageError(
                "this Monitor is already watching",
                why="entered twice, it would leave the reads of tensors changed for good",
                next="leave it first, or use a Monitor of its own for each `with`",
            )
        torch = sys.modules.get("torch")
        for name in _READS if torch is not None else ():
            self._kept[name] = getattr(torch.Tensor, name)  # type: ignore[union-attr]
            setattr(torch.Tensor, name, self._watched(self._kept[name]))  # type: ignore[union-attr]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch = sys.modules.get("torch")
        for name, method in self._kept.items():
            setattr(torch.Tensor, name, method)  # type: ignore[union-attr]
        self._kept = {}

    @contextmanager
    def read(self) -> Iterator[None]:
        """Count what happens inside as a read of the device."""
        begun, outer = self._now(), self._inside
        self._inside = True
        try:
            yield
        finally:
            self._inside = outer
            if not outer:
                self._reading_s += self._now() - begun

    def report(self, *, skip: int = 1, seed: int = 0) -> MonitorReport:
        """What was seen, the first `skip` steps left out; UsageError before there are three more."""
        table = np.array([self._data_s, self._read_s, self._step_s]).T[skip:]
        if len(table) < 3:
            raise UsageError(
                f"only {counted(len(self._step_s), 'step')} so far",
                why=f"{skip} are left out as warm-up, and three are needed for an interval",
                next="run more steps over watch(loader)",
            )
        table[:, 2] -= table[:, 0] + table[:, 1]
        shares = table.sum(0) / table.sum()
        low, high = _interval(table, seed)
        ranked = self._lines.most_common(5)
        return MonitorReport(
            steps=len(table),
            step_s=float(table.sum() / len(table)),
            shares=dict(zip(PARTS, map(float, shares), strict=True)),
            intervals={part: (float(low[i]), float(high[i])) for i, part in enumerate(PARTS)},
            lines={f"{file}:{line} {name}": count / len(self._step_s) for (file, line, name), count in ranked},
        )

    def _watched(self, method: Any) -> Any:
        now, devices = self._now, self._reads_of

        def read(tensor: Any, *args: Any, **options: Any) -> Any:
            if self._inside or tensor.device.type not in devices:
                return method(tensor, *args, **options)
            frame: FrameType = sys._getframe(1)
            self._lines[(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)] += 1
            self._inside = True
            begun = now()
            try:
                return method(tensor, *args, **options)
            finally:
                self._reading_s += now() - begun
                self._inside = False

        return read


def _interval(table: np.ndarray, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(table), size=(500, len(table)))
    sums = np.apply_along_axis(np.bincount, 1, drawn, minlength=len(table)) @ table
    return np.quantile(sums / sums.sum(1, keepdims=True), [0.025, 0.975], axis=0)
