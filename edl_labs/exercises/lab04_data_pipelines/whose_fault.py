"""whose_fault: is a training loop bound by its data, its computation, or neither? From drawn timelines."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import beyond_chance, exercise
from edl_labs.errors import Wrong
from edl_labs.units import seconds

VERDICTS = ("data-bound", "compute-bound", "balanced")


@exercise("whose_fault")
class WhoseFault:
    """Whether a loop is bound by its data, its computation or neither, from its timeline.

    `student.whose_fault(timeline)` gives one of VERDICTS; nine loops of each, corrected for chance.
    """

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
        if _FASTER.get(want) == got and _seconds_are_slow(case["timeline"]):
            raise Wrong(
                "a slow batch was left out of a worker's rate",
                why="each worker's second batch takes half as long again as any later one, and counts as they do",
                next="leave each worker's first batch out, and no other: a rate is of all the rest",
            )
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
    "data-bound": "without first batches: is the loader, all its workers together, clearly slower than the device?",
    "compute-bound": "what would the loader's rate be if steps were free? Workers make batches at once: rates add up",
    "balanced": "compare the two rates without the first batches: how close must they be to be balanced?",
}


# What a loop is taken for whose loader seems faster than it is.
_FASTER = {"data-bound": "balanced", "balanced": "compute-bound"}


def _seconds_are_slow(timeline: Any) -> bool:
    """Whether the second batch of each worker takes more than half as long again as any later one of its own."""
    taken: dict[str, list[float]] = {}
    for span in timeline:
        if span["row"].startswith("worker"):
            taken.setdefault(span["row"], []).append(span["end_s"] - span["start_s"])
    return all(len(times) > 2 and times[1] > 1.5 * max(times[2:]) for times in taken.values())


def _workers(timeline: Any) -> int:
    return len({span["row"] for span in timeline if span["row"].startswith("worker")})


def _billed(timeline: Any) -> dict[str, float]:
    """Where the host's own clock says that the time went."""
    billed = {"next": 0.0, "else": 0.0}
    for span in timeline:
        if span["row"] == "host":
            billed["next" if span["kind"] == "next" else "else"] += span["end_s"] - span["start_s"]
    return billed
