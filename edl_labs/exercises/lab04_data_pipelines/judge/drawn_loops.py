"""Training loops: the cases of overlap_plan and whose_fault."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab04_data_pipelines.whose_fault import VERDICTS
from edl_labs.virtual import VirtualMachine

# Seconds of loading and of the step, each as a multiple of the copy, and the slots. Two of them always come with two
# slots: only there does a host cost time that waits for a slot's step, where the copies should.
_BALANCES = ((3.0, 4.0, 3), (5.0, 2.0, 4), (0.6, 0.8, 2), (2.0, 2.0, 2), (0.9, 3.0, 3))
EACH = 6  # loops of each verdict, with and without the pauses below
# How much slower the slower side is, for loops that are bound; balanced ones stay within 4 %.
_BOUND = (1.3, 2.0)
# How much slower in loops near the 1.1 of the lab's text, where a threshold 0.1 % off shows; all their batches take
# equally long, and copies next to nothing, so that it does not matter over what somebody averages: times are whole
# nanoseconds, 5e-8 of the shortest.
_CLOSE = {"balanced": 1.0995, "data-bound": 1.1005, "compute-bound": 1.1005}
# Of three batches of each worker the second and the third, in steps: their mean is their median, and the third alone
# would make the first two loops another verdict.
_SLOW_SECOND = {"data-bound": (1.53, 0.97), "balanced": (1.22, 0.78), "compute-bound": (1.0, 0.6)}
_STEPS = 24  # past the few in which queues fill
# All hosts pause, whatever the verdict, so that neither what the host does nor how busy the device is tells it: in
# these loops at the beginning, while queues fill (a data-bound one's device may hardly wait then), else in the middle.
_FILLED = (2, 4, 5)
# What each worker's first batch takes more, and a pause in the middle, in steps.
_FIRST, _PAUSE = (3, 30), (1, 8)


@case_source("overlap_plan")
def fed_loops(rng: Any) -> list[Case]:
    """Loops in which loading, copying or stepping takes longest."""
    balances = [_BALANCES[i] for i in rng.permutation(len(_BALANCES))]
    return [Case(given=_fed_loop(rng, load, step, slots=slots)) for load, step, slots in balances]


def _fed_loop(rng: Any, load: float, step: float, *, slots: int) -> dict[str, Any]:
    chip, nbytes = str(rng.choice(["V100", "A100", "H100"])), int(rng.integers(40, 120)) * 1_000_000
    copy_s, count = nbytes / VirtualMachine.of(chip).link_byte_per_s, int(rng.integers(24, 40))

    def times(mean_s: float) -> list[float]:
        return [round(mean_s * float(rng.uniform(0.95, 1.05)), 9) for _ in range(count)]

    overheads = {"launch_overhead_s": (3e-6, 7e-6), "copy_overhead_s": (5e-6, 10e-6), "sync_overhead_s": (3e-6, 8e-6)}
    return {
        "chip": chip,
        "nbytes": nbytes,
        "slots": slots,
        "load_s": times(load * copy_s),
        "step_s": times(step * copy_s),
        "parameters": {name: round(float(rng.uniform(*span)), 9) for name, span in overheads.items()},
    }


@case_source("whose_fault")
def timelines(rng: Any) -> list[Case]:
    """Timelines of loops; the verdict itself is not part of a case."""
    verdicts = [verdict for verdict in VERDICTS for _ in range(EACH)]
    loops = [_drawn(rng, verdict, number) for verdict in VERDICTS for number in range(EACH)]
    mixed = [loops[i] for i in rng.permutation(len(verdicts))]
    close = [_close(rng, verdict, loads_slower=second) for verdict in VERDICTS for second in (False, True)]
    near = [close[i] for i in rng.permutation(len(close))]
    slow = [_slow_second(rng, verdict) for verdict in VERDICTS]
    return [Case(given=one) for one in (mixed + near + [slow[i] for i in rng.permutation(len(slow))])]


def loop(
    load_s: Any,
    step_s: Any,
    *,
    workers: int,
    depth: int,
    copy_s: float,
    copy_blocks: bool,
    first_s: float,
    pauses_s: dict[int, float],
) -> Any:
    """The spans of a loop: workers load in turn, the host takes a batch, copies it, launches a step and goes on.

    A pageable copy blocks: it starts when the device has done the step before, and the host's wait is billed to it
    inside `next`, where loaders that copy put it. `first_s` is what each worker's first batch takes more, `pauses_s`
    what else the host does (it saves the model, say) before it launches these batches' steps.
    """
    spans: list[dict[str, Any]] = []

    def span(row: str, kind: str, start_s: float, end_s: float) -> None:
        spans.append({"row": row, "kind": kind, "start_s": round(start_s, 9), "end_s": round(end_s, 9)})

    free_s = [0.0] * workers
    taken_s: list[float] = []
    main_s = device_s = 0.0
    for batch, (load, step) in enumerate(zip(load_s, step_s, strict=True)):
        worker = batch % workers
        asked_s = taken_s[batch - depth * workers] if batch >= depth * workers else 0.0
        begins_s = max(free_s[worker], asked_s)
        ready_s = begins_s + load + (first_s if batch < workers else 0.0)
        free_s[worker] = ready_s
        span(f"worker {worker}", "load", begins_s, ready_s)
        next_s, main_s = main_s, max(main_s, ready_s)
        if copy_blocks:
            main_s = max(main_s, device_s) + copy_s
        else:
            device_s = max(main_s, device_s) + copy_s
        span("host", "next", next_s, main_s)
        taken_s.append(main_s)
        launched_s = main_s + 1e-4 + pauses_s.get(batch, 0.0)
        span("host", "launch", main_s, launched_s)
        main_s = launched_s
        started_s = max(main_s, device_s)
        device_s = started_s + step
        span("device", "step", started_s, device_s)
        if not copy_blocks:
            span("host", "item", main_s, device_s)
            main_s = device_s
    return spans


def _drawn(rng: Any, verdict: str, number: int) -> dict[str, Any]:
    workers, depth = (1, 3, 6, 2, 8, 4)[number], int(rng.integers(1, 3))
    step = float(rng.uniform(20e-3, 120e-3))
    slower = float(rng.uniform(*_BOUND)) if verdict != "balanced" else float(rng.uniform(0.97, 1.03))
    per_batch = step / slower if verdict == "compute-bound" else step * slower
    noise = 0.1 if verdict == "balanced" else 0.25

    def times(mean_s: float) -> list[float]:
        drawn = rng.uniform(1 - noise, 1 + noise, size=_STEPS)
        return [float(value) for value in drawn / drawn.mean() * mean_s]

    if number in _FILLED:
        depth = 4
        pauses_s = {0: float(rng.uniform(0.5, 2)) * depth * workers * per_batch}
    else:
        pauses_s = {batch: float(rng.uniform(*_PAUSE)) * step for batch in (8, 14, 20)}
    spans = loop(
        times(per_batch * workers),
        times(step),
        workers=workers,
        depth=depth,
        copy_s=0.004 * step,
        copy_blocks=number % 2 == 1,
        first_s=float(rng.uniform(*_FIRST)) * step,
        pauses_s=pauses_s,
    )
    return {"timeline": spans}


def _close(rng: Any, verdict: str, *, loads_slower: bool) -> dict[str, Any]:
    """A loop near the threshold; the slower side is `loads_slower` where the verdict does not tell it."""
    workers, step_s = int(rng.integers(2, 7)), float(rng.uniform(20e-3, 120e-3))
    if verdict != "balanced":
        loads_slower = verdict == "data-bound"
    per_batch_s = step_s * _CLOSE[verdict] if loads_slower else step_s / _CLOSE[verdict]
    spans = loop(
        [per_batch_s * workers] * _STEPS,
        [step_s] * _STEPS,
        workers=workers,
        depth=2,
        copy_s=1e-5 * step_s,
        copy_blocks=bool(rng.random() < 0.5),
        first_s=float(rng.uniform(*_FIRST)) * step_s,
        pauses_s={},
    )
    return {"timeline": spans}


def _slow_second(rng: Any, verdict: str) -> dict[str, Any]:
    """A loop of many workers, so that each has two batches that count; the first of them takes longer.

    The host pauses until all batches are there or nearly so, so that nothing it does later tells the verdict.
    """
    workers, depth, step_s = _STEPS // 3, 4, float(rng.uniform(20e-3, 120e-3))
    second, third = _SLOW_SECOND[verdict]
    spans = loop(
        [share * step_s * workers for share in (third, second, third) for _ in range(workers)],
        [step_s] * _STEPS,
        workers=workers,
        depth=depth,
        copy_s=0.004 * step_s,
        copy_blocks=bool(rng.random() < 0.5),
        first_s=float(rng.uniform(*_FIRST)) * step_s,
        pauses_s={0: float(rng.uniform(0.5, 2)) * depth * workers * step_s},
    )
    return {"timeline": spans}
