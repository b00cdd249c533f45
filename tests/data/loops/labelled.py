"""The labelled corpus: loops as numbers, each cause in four severities on two machines, mixtures, and true shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edl_labs.trace.loops import VirtualLoop
from edl_labs.trace.traced_gpu import TracedGPU
from tests.data.loops.truth import true_shares

# Not read off the table of causes: a new one there would draw other loops from the same seeds.
CORPUS_CAUSES = ("compute", "copy", "launch", "sync", "data", "alloc", "host")
# What a launch costs on the machines of the corpus.
_LAUNCH_S = 5e-6


@dataclass(frozen=True)
class LoopSpec:
    """One step: wait for data, bring a batch, run kernels with host code, reads and allocations among them.

    `kernel_s` is the median kernel's duration, `spread` the deviation of its logarithm; `reads` numbers are read after
    evenly spaced kernels (`late_reads`: all behind the last); `jitter` varies the data wait from step to step.
    """

    name: str
    kernels: int = 40
    kernel_s: float = 50e-6
    spread: float = 0.5
    reads: int = 0
    late_reads: bool = False
    data_s: float = 0.0
    jitter: float = 0.0
    host_s: float = 0.0
    copy_bytes: int = 0
    pinned: bool = False
    allocs: int = 0
    alloc_s: float = 0.0
    frees: bool = False
    machine: str = "A100-80GB"
    seed: int = 0

    def loop(self) -> VirtualLoop:
        """The loop, to record, time and ablate."""
        return VirtualLoop(self._step, setup=self._setup, machine=self.machine, name=self.name)

    def _setup(self, gpu: TracedGPU) -> dict[str, Any]:
        rng = np.random.default_rng(self.seed)
        durations = np.round(self.kernel_s * np.exp(rng.normal(0.0, self.spread, self.kernels)), 9)
        state: dict[str, Any] = {"loss": gpu.empty(4, name="loss"), "durations": durations.tolist(), "rng": rng}
        if self.copy_bytes:
            state["batch"] = gpu.host_empty(self.copy_bytes, pin_memory=self.pinned, name="batch")
            state["input"] = gpu.empty(self.copy_bytes, name="input")
        return state

    def _step(self, gpu: TracedGPU, state: dict[str, Any]) -> None:
        if self.data_s:
            gpu.data_wait(self.data_s * float(np.exp(state["rng"].normal(0.0, self.jitter))))
        if self.copy_bytes:
            gpu.copy(state["input"], state["batch"], non_blocking=self.pinned)
        reads, allocs = self._places(self.reads, late=self.late_reads), self._places(self.allocs, late=False)
        for number, duration_s in enumerate(state["durations"]):
            if self.host_s:
                gpu.host_work(self.host_s / self.kernels)
            for _ in range(allocs.count(number)):
                self._allocate(gpu)
            gpu.launch(f"kernel{number % 7}", duration_s=duration_s)
            for _ in range(reads.count(number)):
                gpu.item(state["loss"])

    def _allocate(self, gpu: TracedGPU) -> None:
        gpu.call("cudaMalloc", self.alloc_s)
        if self.frees:
            with gpu.annotate("cudaFree"):
                gpu.synchronize()

    def _places(self, count: int, *, late: bool) -> list[int]:
        if late:
            return [self.kernels - 1] * count
        return [(index + 1) * self.kernels // count - 1 for index in range(count)]


def drawn_spec(seed: int, *, causes: tuple[str, ...] | None = None) -> LoopSpec:
    """A loop with one to three causes (or `causes`), sizes and places drawn from a seed."""
    rng = np.random.default_rng(seed)
    if causes is None:
        causes = tuple(rng.choice(CORPUS_CAUSES, size=int(rng.integers(1, 4)), replace=False))
    short = "launch" in causes or "sync" in causes
    kernels = int(rng.integers(20, 120))
    kernel_s = _log(rng, 0.8e-6, 3.5e-6) if "launch" in causes else _log(rng, 8e-6, 40e-6 if short else 150e-6)
    busy_s = kernels * max(kernel_s, _LAUNCH_S)
    values: dict[str, Any] = {"kernels": kernels, "kernel_s": kernel_s, "spread": float(rng.uniform(0.0, 0.7))}
    if "sync" in causes:
        values.update(reads=int(rng.integers(kernels // 3, kernels + 1)), late_reads=bool(rng.random() < 0.2))
    if "data" in causes:
        values.update(data_s=busy_s * _log(rng, 1.2, 5.0), jitter=float(rng.uniform(0.0, 0.3)))
    if "host" in causes:
        values.update(host_s=busy_s * _log(rng, 1.2, 4.0))
    if "copy" in causes:
        values.update(copy_bytes=int(busy_s * 8e9 * _log(rng, 0.8, 4.0)))
    if "alloc" in causes:
        allocs = int(rng.integers(1, 9))
        values.update(allocs=allocs, alloc_s=busy_s * _log(rng, 1.0, 4.0) / allocs, frees=bool(rng.random() < 0.5))
    machine = str(rng.choice(["A100-80GB", "H200", "V100"]))
    return LoopSpec(name=f"{'+'.join(causes)} #{seed}", seed=seed, machine=machine, **values)


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


# Enough for an interval over steps, and quick on virtual time.
STEPS = 10
# With less between the first and the second a loop has no dominant cause to name.
_MARGIN = 0.05
_MACHINES = ("A100-80GB", "H200")
_BASE = LoopSpec("base", kernels=40, kernel_s=30e-6)


@dataclass(frozen=True)
class Labelled:
    """A loop with what is known of it: its true shares and its dominant cause."""

    spec: LoopSpec
    shares: dict[str, float]

    @property
    def loop(self) -> VirtualLoop:
        """The loop, to record, time and ablate."""
        return self.spec.loop()

    @property
    def dominant(self) -> str:
        """The cause with the largest true share."""
        return max(self.shares, key=lambda cause: self.shares[cause])

    @property
    def margin(self) -> float:
        """By how much the dominant cause's share exceeds the next one's."""
        first, second = sorted(self.shares.values(), reverse=True)[:2]
        return first - second


def labelled_loops(*, mixtures: int = 24, seed: int = 0) -> Iterator[Labelled]:
    """7 causes x 4 severities x 2 machines, then mixtures drawn from `seed`; all with a dominant cause."""
    for machine in _MACHINES:
        for cause in CORPUS_CAUSES:
            for severity in range(4):
                spec = replace(_BASE, name=f"{cause} {severity + 1} on {machine}", machine=machine, seed=severity)
                yield _labelled(replace(spec, **_SEVERITIES[cause][severity]))
    found = 0
    while found < mixtures:
        candidate = _labelled(drawn_spec(seed))
        seed += 1
        if candidate.margin >= _MARGIN:
            found += 1
            yield candidate


def _labelled(spec: LoopSpec) -> Labelled:
    return Labelled(spec, true_shares(spec.loop(), steps=STEPS))


# Seconds.
_MS, _US = 1e-3, 1e-6
_SEVERITIES: dict[str, list[dict[str, Any]]] = {
    "compute": [{"kernel_s": seconds} for seconds in (15 * _US, 40 * _US, 150 * _US, 600 * _US)],
    "copy": [{"copy_bytes": size} for size in (18_000_000, 30_000_000, 60_000_000, 150_000_000)],
    "launch": [
        {"kernel_s": seconds, "kernels": count, "spread": 0.2}
        for seconds, count in ((1.6 * _US, 60), (1.2 * _US, 120), (0.8 * _US, 200), (0.5 * _US, 300))
    ],
    "sync": [
        {"kernel_s": 5.5 * _US, "reads": 40, "spread": 0.1},
        {"kernel_s": 4.5 * _US, "reads": 40, "spread": 0.1},
        {"kernel_s": 4.5 * _US, "reads": 80, "spread": 0.1},
        {"kernel_s": 6 * _US, "reads": 120, "spread": 0.1, "kernels": 60},
    ],
    "data": [{"data_s": seconds, "jitter": 0.2} for seconds in (2.8 * _MS, 4 * _MS, 8 * _MS, 25 * _MS)],
    "alloc": [
        {"allocs": count, "alloc_s": seconds, "frees": frees}
        for count, seconds, frees in (
            (4, 0.8 * _MS, False),
            (2, 1.5 * _MS, True),
            (8, 0.6 * _MS, True),
            (1, 9 * _MS, False),
        )
    ],
    "host": [{"host_s": seconds} for seconds in (2.8 * _MS, 4 * _MS, 8 * _MS, 20 * _MS)],
}
