"""A loader's throughput before it is built: the slowest of workers, cores and main process, with contention fitted.

Only processor time wants a core: what a worker waits for (a network, a disk, another process) overlaps with everything.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import BrokenBarrierError
from typing import Any, cast

from edl_labs.arguments import checked_arguments, require_amount, require_positive
from edl_labs.device import usable_cores
from edl_labs.errors import EdlError, UsageError
from edl_labs.pipeline._within import too_long
from edl_labs.pipeline.processor_time import meter, split
from edl_labs.presenters import Plottable
from edl_labs.values import Value

# What something that takes no time is taken to take: far less than anything does.
_NOTHING_S = 1e-12


@dataclass(frozen=True, repr=False)
class Contention(Value):
    """How n processes slow each other: each runs at 1 / (1 + sigma (n - 1)) of its speed alone, up to `cores`.

    The first term of Gunther's universal scalability law; cores that share a memory bus or a physical core have it.
    `rates` are the measured calls a second of n processes together; `waited_share` is the share of a call's time in one
    process alone in which it was on no core: it waited, or other programs had the cores.
    """

    sigma: float
    cores: int
    rates: dict[int, float]
    waited_share: float = 0.0

    def slowdown(self, busy: float) -> float:
        """How much longer a call takes when `busy` cores are busy."""
        return 1 + self.sigma * max(0.0, min(busy, self.cores) - 1)


@dataclass(frozen=True, repr=False)
class LoaderModel(Value, Plottable):
    """What a batch costs: `worker_s` in a worker, `handoff_s` more there to hand it over, `main_s` in the main process.

    `waited_s` of `worker_s` is waiting, which needs no core; the rest competes for cores, with the main process's part.
    Unless given it is the share that `contention` measured.
    `step_s` is the step's time; with `step_on_cpu` it uses a core of this machine while it runs.
    """

    batch_size: int
    worker_s: float
    handoff_s: float = 0.0
    main_s: float = 0.0
    step_s: float = 0.0
    step_on_cpu: bool = False
    contention: Contention = Contention(0.0, 1, {})
    waited_s: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.waited_s is None:
            object.__setattr__(self, "waited_s", self.contention.waited_share * self.worker_s)
        require_positive(batch_size=self.batch_size)
        names = ("worker_s", "handoff_s", "main_s", "step_s")
        require_amount(**{name: getattr(self, name) for name in names})
        if not 0 <= self.waited_s <= self.worker_s:
            raise UsageError(
                f"waited_s is {self.waited_s!r}, but worker_s is {self.worker_s!r}",
                why="waiting is part of a worker's time per batch, so waited_s must be from 0 to worker_s",
                next="pass both times in seconds per batch",
            )

    def bounds(self, workers: int) -> dict[str, float]:
        """Samples a second that each part allows: 'workers', 'cores' and 'main'; without workers 'main' alone."""
        if workers == 0:
            return {"main": self.batch_size / (self.worker_s + self.step_s or _NOTHING_S)}
        return self._settled(workers)[0]

    def sample_per_s(self, workers: int) -> float:
        """The predicted throughput: the least bound, less what workers that also wait lose when many want a core."""
        require_amount(workers=workers)
        if workers == 0 or not self.waited_s:
            return min(self.bounds(workers).values())
        bounds, slow = self._settled(workers)
        each, own = self._core_s()
        free = self.contention.cores * each / (each + own) if each + own else self.contention.cores
        shared = self.batch_size * sharing_rate(workers, free, core_s=each * slow, waited_s=self.waited_s)
        return min(*bounds.values(), shared)

    def _core_s(self) -> tuple[float, float]:
        """Processor seconds of a batch, in a worker and in the main process."""
        return self.worker_s - self.waited_s + self.handoff_s, self.main_s + (self.step_s if self.step_on_cpu else 0.0)

    def _settled(self, workers: int) -> tuple[dict[str, float], float]:
        """The bounds with workers, and how much longer everything takes on cores that are as busy as they are then."""
        cores = self.contention.cores
        each, own = self._core_s()
        slept = 0.0 if self.step_on_cpu else self.step_s
        slow = 1.0
        # How busy the cores are depends on the rate, and the rate on how busy they are: a few rounds settle it.
        for _ in range(40):
            bounds = {
                "workers": self.batch_size * workers / (each * slow + self.waited_s or _NOTHING_S),
                "cores": self.batch_size * cores / ((each + own) * slow or _NOTHING_S),
                "main": self.batch_size / (own * slow + slept or _NOTHING_S),
            }
            rate = min(bounds.values()) / self.batch_size * slow
            slow = (slow + self.contention.slowdown(min(workers, rate * each) + min(1.0, rate * own))) / 2
        return bounds, slow

    def limit(self, workers: int) -> str:
        """What limits the loader at this number of workers."""
        bounds = self.bounds(workers)
        return min(bounds, key=bounds.__getitem__)


@checked_arguments()
def sharing_rate(workers: int, cores: float, *, core_s: float, waited_s: float) -> float:
    """Rounds a second of `workers` that each wait `waited_s`, then want a core for `core_s`, and share `cores` evenly.

    The closed network of a delay and a shared processor, which has a product form whatever the distributions (Baskett,
    Chandy, Muntz and Palacios 1975): it holds where workers are out of step, as drawn waits make them.

    >>> [round(sharing_rate(workers, 2, core_s=10e-3, waited_s=40e-3)) for workers in (1, 2, 8, 64)]
    [20, 40, 147, 200]
    """
    require_amount(workers=workers, core_s=core_s, waited_s=waited_s)
    require_positive(cores=cores)
    if not core_s:
        return workers / (waited_s or _NOTHING_S)
    if not waited_s:
        return min(workers, cores) / core_s
    weights = [1.0]
    for busy in range(1, workers + 1):
        weights.append(weights[-1] * (workers - busy + 1) * core_s / waited_s / min(busy, cores))
    served = sum(weight * min(busy, cores) for busy, weight in enumerate(weights))
    return served / sum(weights) / core_s


@checked_arguments()
def fit_contention(rates: Mapping[int, float], *, cores: int | None = None, waited_share: float = 0.0) -> Contention:
    """The `Contention` that fits the measured rates of 1, 2, ... processes best (least squares on the slowdown).

    A slowdown is that of whole calls: of work that waits, noise over its small busy part would say nothing.

    >>> fit_contention({1: 100.0, 2: 182.0}, cores=2).sigma
    0.098901
    """
    cores = usable_cores() if cores is None else cores
    if 1 not in rates or min(rates.values(), default=0) <= 0:
        raise UsageError(
            "the rate of a single process is missing, or a rate is not positive",
            why="slowdowns are computed relative to the rate of a single process",
            next="measure with 1, 2, ... processes",
        )
    pairs = [(min(n, cores) - 1, min(n, cores) * rates[1] / rate - 1) for n, rate in rates.items() if 1 < n <= cores]
    weight = sum(x * x for x, _ in pairs)
    sigma = max(0.0, sum(x * y for x, y in pairs) / weight) if weight else 0.0
    return Contention(round(sigma, 6), cores, dict(rates), round(waited_share, 6))


@checked_arguments()
def measure_contention(
    work: Callable[[], Any], *, processes: Sequence[int] | None = None, seconds: float = 0.5, rounds: int = 3
) -> Contention:
    """The `Contention` of `work` on this machine: n forked processes repeat it for `seconds`, in interleaved rounds.

    What one process alone spends on no core is its `waited_share`: on a busy machine that holds the turns of other
    programs, which are no work of these processes either.
    Where processes cannot fork, one process is measured and no contention is claimed.
    """
    cores = usable_cores()
    counts = list(dict.fromkeys([1, *(range(2, min(cores, 8) + 1) if processes is None else processes)]))
    if "fork" not in multiprocessing.get_all_start_methods():
        rate, off_core_share = _rate(work, seconds)
        return Contention(0.0, cores, {1: rate}, round(off_core_share, 6))
    seen: dict[int, list[tuple[float, float]]] = {n: [] for n in counts}
    for _ in range(rounds):
        for n in counts:
            seen[n].append(_together(work, n, seconds))
    # Other programs only ever take away: the best round is the machine's own.
    best = {n: max(found) for n, found in seen.items()}
    return fit_contention({n: rate for n, (rate, _) in best.items()}, cores=cores, waited_share=best[1][1])


def _together(work: Callable[[], Any], processes: int, seconds: float) -> tuple[float, float]:
    """Calls a second of all processes together, and the mean share of their time that they were on no core."""
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(processes + 1)
    counts, waited = (context.Array("d", processes, lock=False) for _ in range(2))
    failures = context.SimpleQueue()

    def run(place: int) -> None:
        try:
            work()
            gate.wait(60)
            counts[place], waited[place] = _rate(work, seconds)
        except BrokenBarrierError:
            return
        except BaseException as error:
            # The reason goes first: whoever the gate lets go finds it.
            failures.put(f"{type(error).__name__}: {error}"[:200])
            gate.abort()
            raise SystemExit(1) from None

    children = [context.Process(target=run, args=(place,), daemon=True) for place in range(processes)]
    try:
        for child in children:
            child.start()
        with suppress(BrokenBarrierError):
            gate.wait(60)
        for child in children:
            child.join(0 if gate.broken else seconds + 60)
        if gate.broken or any(child.exitcode != 0 for child in children):
            raise _failed(failures, children, seconds + 60)
    finally:
        for child in children:
            if child.is_alive():
                child.kill()
    return float(sum(counts)), float(sum(waited)) / processes


def _failed(failures: Any, children: Sequence[Any], limit_s: float) -> EdlError:
    codes = [child.exitcode for child in children if child.exitcode]
    if failures.empty() and not codes:
        return too_long("a process of the contention measurement", limit_s)
    return UsageError(
        "the work failed in a process of the contention measurement",
        why=f"the process ended with exit code {codes[0]}" if failures.empty() else failures.get(),
        next="call the work once in this process to see its error",
    )


def _rate(work: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Calls a second, and the share of their time that this process was on no core."""
    before, done = meter(), 0
    while time.perf_counter() < before.wall_s + seconds:
        work()
        done += 1
    found = split(before, meter())
    return done / found.wall_s, found.off_core_share


class _Ready:
    """Batches that are there at once: what is left is handing them over."""

    def __init__(self, batch: Any, count: int) -> None:
        self.batch, self.count = batch, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, sample: int) -> Any:
        return self.batch.clone()


@checked_arguments()
def measure_handoff(batch: Any, *, batches: int = 120) -> tuple[float, float]:
    """(seconds in the worker, seconds in the main process) of processor time to hand over a batch like `batch`.

    A DataLoader with one worker passes copies of a tensor; a shorter run is taken off, so that starting does not count,
    and so is making the copies.
    """
    from edl_labs.bench import measure

    if batches < 4:
        raise UsageError(
            f"batches must be 4 or more, got {batches}.",
            why="A run with a quarter of the batches is subtracted to exclude the start-up time.",
            next="Pass batches=120.",
        )
    short, long = (_handoff_cpu_s(batch, count) for count in (batches // 4, batches))
    gap = batches - batches // 4
    worker_s, main_s = ((b - a) / gap for a, b in zip(short, long, strict=True))
    copying_s = measure(batch.clone, budget_s=0.1, detect=False).median_s
    return max(worker_s - copying_s, 0.0), max(main_s, 0.0)


def _handoff_cpu_s(batch: Any, count: int) -> tuple[float, float]:
    import resource

    from torch.utils.data import DataLoader

    context = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    loader: Any = DataLoader(
        cast(Any, _Ready(batch, count)), batch_size=None, num_workers=1, multiprocessing_context=context, timeout=60
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.process_time()
    for _ in loader:
        pass
    main_s = time.process_time() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    children_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return children_s, main_s
