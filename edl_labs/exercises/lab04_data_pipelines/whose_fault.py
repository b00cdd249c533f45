"""whose_fault: is a training loop bound by its data, its computation, or neither? From drawn timelines."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import beyond_chance, exercise
from edl_labs.errors import Wrong
from edl_labs.units import seconds

VERDICTS = ("data-bound", "compute-bound", "balanced")
EACH = 6  # loops of each verdict, with and without the pauses below
# How much slower the slower side is, for loops that are bound; balanced ones stay within 4 %.
_BOUND = (1.3, 3.0)
_STEPS = 24  # past the few in which queues fill
# Loops whose host pauses: at the beginning, while all of a data-bound loop's queues fill, so that its device hardly
# waits; in the middle, where a device waits for no data. Whether the device is busy says nothing there.
_FILLED, _PAUSED = (2, 4, 5), (2, 3, 4, 5)


@exercise("whose_fault")
class WhoseFault:
    """Whether a loop is bound by its data, its computation or neither, from its timeline.

    `student.whose_fault(timeline)` gives one of VERDICTS; six loops of each, corrected for chance.
    """

    def cases(self, rng: Any) -> list[Any]:
        # The verdict itself is not part of a case: cases travel to the student's process.
        verdicts = [verdict for verdict in VERDICTS for _ in range(EACH)]
        loops = [_drawn(rng, verdict, number) for verdict in VERDICTS for number in range(EACH)]
        return [loops[i] for i in rng.permutation(len(verdicts))]

    def probe(self, student: Any, case: Any) -> Any:
        return student.whose_fault(case["timeline"])

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in VERDICTS:
            raise Wrong(
                f"{got[:40]!r} is not one of the three verdicts",
                why=f"they are {', '.join(VERDICTS)}",
                next="return one",
            )
        if got == want:
            return
        host = _billed(case["timeline"])
        raise Wrong(
            f"this loop is not {got}",
            why=f"workers: {_workers(case['timeline'])}, each one's first batch does not count; "
            f"the host spent {seconds(host['next'])} in next and "
            f"{seconds(host['else'])} elsewhere",
            next=_NEXT[got],
        )

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return beyond_chance(fractions, answers=len(VERDICTS))

    def show(self, case: Any) -> str:
        spans = case["timeline"]
        rows = [
            f"  {span['row']:<9} {span['kind']:<6} {seconds(span['start_s']):>8} to {seconds(span['end_s'])}"
            for span in spans[:12]
        ]
        return "\n".join([f"{len(spans)} spans, the first of them:", *rows])


_NEXT = {
    "data-bound": "each worker's first batch does not count: is the loader slower than the device would be alone?",
    "compute-bound": "what would the loader's rate be if steps were free? Several workers make several batches at once",
    "balanced": "compare the two rates in the steady state, without the first batches",
}


def _workers(timeline: Any) -> int:
    return len({span["row"] for span in timeline if span["row"].startswith("worker")})


def _billed(timeline: Any) -> dict[str, float]:
    """Where the host's own clock says that the time went."""
    billed = {"next": 0.0, "else": 0.0}
    for span in timeline:
        if span["row"] == "host":
            billed["next" if span["kind"] == "next" else "else"] += span["end_s"] - span["start_s"]
    return billed


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
    what the host does beside (it saves the model, say) before it launches these batches' steps.
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

    pauses_s: dict[int, float] = {}
    if verdict != "data-bound" and number in _PAUSED:
        pauses_s = {batch: float(rng.uniform(2.5, 4)) * step for batch in (8, 14, 20)}
    elif verdict == "data-bound" and number in _FILLED:
        depth = 4
        pauses_s = {0: 1.5 * depth * workers * per_batch}
    copy_s = 0.004 * step
    spans = loop(
        times(per_batch * workers),
        times(step),
        workers=workers,
        depth=depth,
        copy_s=copy_s,
        copy_blocks=number % 2 == 1,
        first_s=float(rng.uniform(10, 30)) * step if number in (2, 5) else 0.0,
        pauses_s=pauses_s,
    )
    return {"timeline": spans}
