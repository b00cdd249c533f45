"""`Prediction`: what a step is expected to take on a machine, with its doubt, its memory, its limiter and reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.presenters import Plottable
from edl_labs.units import byte_count, percent, seconds
from edl_labs.values import Value
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.timeline import Timeline


@dataclass(frozen=True, repr=False)
class ExpensiveOperator(Value):
    """What all kernels of one kind take together: where, how often, in which dtype, what limits them and why."""

    name: str
    module: str
    phase: str
    dtype: str
    calls: int
    seconds: float
    share: float
    limiter: str
    reason: str


@dataclass(frozen=True, repr=False)
class Prediction(Value, Plottable):
    """A step on a machine that need not be here.

    `low_s` to `high_s` hold the step in four cases of five. `limits` are seconds by what they went into: compute,
    memory, launch (the GPU waits for the host) and communication; `works` by what was done: products, convolutions,
    attention, moving bytes. `roofline_efficiency` is the share of the datasheet's roofline that the step reaches, `mfu`
    the products of the model alone against the datasheet's rate. `peak_bytes` are those of one GPU, `held` by category.
    `fits` is yes, no or unsure. `unknown` names operators without a price: `step_s` is then the time of all others, the
    step takes at least `low_s`, and `high_s` is infinite. `measured` figures are the card's own, `assumed` come from
    tables.
    """

    DERIVED = ("samples_per_s", "limiter", "fits", "at_least")
    OMITTED = ("source",)

    model: str
    machine: str
    dtype: str
    compiled: bool
    is_training: bool
    gpus: int
    replicas: int
    accumulate: int
    batch: int | None
    step_s: float
    low_s: float
    high_s: float
    host_s: float
    peak_bytes: int
    memory_bytes: int
    held: Mapping[str, int]
    peak_phase: str
    peak_module: str
    flops: float
    mfu: float
    roofline_efficiency: float
    limits: Mapping[str, float]
    works: Mapping[str, float]
    phases: Mapping[str, float]
    most_expensive: tuple[ExpensiveOperator, ...]
    unknown: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    price_per_hour: float = 0.0
    source: Source | None = field(default=None, repr=False, compare=False)

    @property
    def samples_per_s(self) -> float:
        """Samples of all GPUs in a second; 0 where the example does not say how many it holds."""
        return (self.batch or 0) * self.replicas * self.accumulate / self.step_s if self.step_s else 0.0

    @property
    def limiter(self) -> str:
        """What takes most of the time."""
        return max(self.limits, key=lambda name: self.limits[name])

    @property
    def at_least(self) -> bool:
        """Whether the step has work without a price, so that it takes at least `low_s`."""
        return bool(self.unknown)

    @property
    def fits(self) -> str:
        """'yes' with room for workspaces and gaps of the allocator, 'unsure' up to the card's whole memory, or 'no'."""
        if self.peak_bytes > self.memory_bytes * (_FULL if self.gpus == 1 else _FULL_OF_MANY):
            return "no"
        return "yes" if self.peak_bytes * _GAPS + _CONTEXT_BYTES <= self.memory_bytes else "unsure"

    @property
    def cost_per_million(self) -> float:
        """The cost of a million samples at `price_per_hour` per GPU; 0 without a price."""
        if not self.price_per_hour or not self.samples_per_s:
            return 0.0
        return self.price_per_hour * self.gpus / 3600 / self.samples_per_s * 1e6

    @property
    def timeline(self) -> Timeline:
        """The step of one GPU on a VirtualGPU: host and stream; `to_chrome_trace()` opens in Perfetto."""
        if self.source is None:
            raise UsageError(
                "this prediction has no timeline",
                why="it was loaded from JSON, which contains only the results",
                next="predict the step again, or save its timeline as well",
            )
        return self.source.timeline()

    def what_if(
        self, *, batch: int | None = None, dtype: str | None = None, compiled: bool | None = None,
        checkpoint: bool | str | None = None, machine: Any = None, gpus: Any = None,
    ) -> Prediction:  # fmt: skip
        """The same step with one choice or several changed; `gpus` is a number, or what `predict_step(cluster=)` takes.

        `batch` changes the first dimension of every tensor of the example that has the old one.
        """
        if self.source is None or self.source.again is None:
            raise UsageError(
                "This prediction has no what_if().",
                why="It was loaded from JSON or received from another process, and does not contain the model.",
                next="Call predict_step(model, example, …) again.",
            )
        changes = {"batch": batch, "dtype": dtype, "compiled": compiled, "checkpoint": checkpoint}
        changes |= {"machine": machine, "cluster": gpus}
        return self.source.again({name: value for name, value in changes.items() if value is not None})

    @property
    def time_text(self) -> str:
        """The step's time with its interval, or with its lower bound where some of it has no price."""
        if self.at_least:
            return f"at least {seconds(self.low_s)} ({seconds(self.step_s)} without {', '.join(self.unknown)})"
        return f"{seconds(self.step_s)} ({seconds(self.low_s)} to {seconds(self.high_s)})"

    def __str__(self) -> str:
        many = f" on {self.gpus} × {self.machine}" if self.gpus > 1 else f" on {self.machine}"
        most = self.samples_per_s * self.step_s / self.low_s if self.at_least else self.samples_per_s
        rate = f", {'at most ' if self.at_least else ''}{most:,.4g} samples/s" if self.batch else ""
        how = f"{self.dtype}, compiled" if self.compiled else self.dtype
        memory = f"{byte_count(self.peak_bytes)} of {byte_count(self.memory_bytes)} (fits: {self.fits})"
        return (
            f"{self.model}{many}, {how}: {self.time_text}{rate}; limited by {self.limiter} "
            f"({percent(self.limits[self.limiter] / self.step_s)}); memory {memory}"
        )

    def __repr__(self) -> str:
        shares = ", ".join(f"{name} {percent(value / self.step_s)}" for name, value in self.limits.items() if value > 0)
        lines = [
            str(self),
            f"time: {shares}; {percent(self.roofline_efficiency)} of the roofline, MFU {percent(self.mfu)}",
        ]
        held = ", ".join(
            f"{name} {byte_count(size)}" for name, size in sorted(self.held.items(), key=lambda x: -x[1])[:4]
        )
        where = f", most in {self.peak_module}" if self.peak_module else ""
        lines.append(f"peak in {self.peak_phase}: {held}{where}")
        rows = [("operator", "where", "calls", "time", "share", "limited by: why")]
        for one in self.most_expensive:
            why = f"{one.limiter}: {one.reason}"
            rows.append(
                (
                    one.name,
                    f"{one.phase} {one.module}"[:34],
                    str(one.calls),
                    seconds(one.seconds),
                    percent(one.share),
                    why,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines += [
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]) for row in rows
        ]
        if self.unknown:
            lines.append(
                f"the time of {', '.join(self.unknown)} is unknown, so the step takes longer than the sum of the others"
            )
        lines += [f"measured: {', '.join(self.measured) or 'nothing'}; assumed: {', '.join(self.assumed)}", *self.notes]
        return "\n".join(lines)


# Beside tensors, a process holds CUDA's context and libraries (0.5 to 0.8 GB on cards of today), and the allocator's
# gaps are a few per cent (published peaks of reserved against active memory).
_CONTEXT_BYTES, _GAPS = 0.7e9, 1.06
_FULL = 1.05  # a prediction's own error: what is 5 % above the memory is known to be too much
# Peaks of published steps on many GPUs are off by 13 % in the median (`benchmarks/step_prediction.py`): what is kept,
# sharded and prefetched is a choice of each trainer.
_FULL_OF_MANY = 1.13


@dataclass(frozen=True)
class Source:
    """What a prediction was made from: how to make another, and its kernels in time."""

    again: Callable[[dict[str, Any]], Prediction] | None
    spans: tuple[tuple[str, float, float], ...]

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels between processes as its kernels in time; the model stays where it is."""
        return Source, (None, self.spans)

    def timeline(self) -> Timeline:
        """Kernels of `(name, seconds, host seconds before its launch)`, on a VirtualGPU."""
        gpu = VirtualGPU(VirtualMachine())
        for name, duration_s, host_s in self.spans:
            gpu.host_work(host_s)
            gpu.launch(name, duration_s=duration_s)
        gpu.synchronize()
        return gpu.timeline
