"""broken_timers: naming the fault of a timer from what it reported."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import beyond_chance, exercise
from edl_labs.errors import Wrong
from edl_labs.units import counted, seconds

FAULTS = (
    "no sync",
    "sync per call",
    "cold first call",
    "wrong stream",
    "cache-warm",
    "clock too coarse",
    "none",
)
SHOWN_CALLS = 4  # their names fit on a line


@exercise("broken_timers")
class BrokenTimers:
    """Name what is wrong with a timer from what it reported, the truth and the timeline.

    `student.name_fault(report)` gives one of FAULTS; three timers of each, corrected for chance.
    """

    def probe(self, student: Any, case: Any) -> Any:
        return student.name_fault(case)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in FAULTS:
            raise Wrong(
                f"{got[:40]!r} is not one of the seven answers",
                why=f"they are {', '.join(FAULTS)}",
                next="return one of them",
            )
        if got != want:
            raise Wrong(f"this timer's fault is not {got!r}", why=_IF[got], next=_NEXT[got])

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return beyond_chance(fractions, answers=len(FAULTS))

    def show(self, case: Any) -> str:
        rows = [
            f"  {counted(calls, 'call'):>8}: {seconds(value)} a call"
            for calls, value in zip(case["calls"], case["seconds_per_call"], strict=True)
        ]
        return "\n".join(
            [
                f"truth {seconds(case['true_seconds_per_call'])} a call; a launch takes {seconds(case['launch_s'])}; "
                f"the clock's step is {seconds(case['clock_resolution_s'])}",
                *rows,
                f"  timeline of {SHOWN_CALLS} calls: " + ", ".join(span["name"] for span in case["timeline"]),
            ]
        )


_IF = {
    "no sync": "a timer without a sync sees the launches alone, and its timeline has no synchronisation",
    "sync per call": "with a sync after each call, launch and kernel add up in every call, however many there are",
    "cold first call": "a cost paid once shrinks with the number of calls, and is large for a single one",
    "wrong stream": "a sync on a stream without work returns at once: it is in the timeline, and waits for nothing",
    "cache-warm": "data from the cache make the kernels themselves shorter than the truth, yet longer than a launch",
    "clock too coarse": "a coarse clock's step is as long as a call or longer, and its reports come in such steps",
    "none": "a sound timer comes close to the truth, and closer with more calls",
}
_NEXT = {
    "no sync": "compare the longest run with launch_s, and look for a synchronisation in the timeline",
    "sync per call": "count the synchronisations in the timeline",
    "cold first call": "multiply what is reported too much by the number of calls: is it the same for each run?",
    "wrong stream": "look in the timeline for a synchronisation, and for when the last kernel ends",
    "cache-warm": "compare the kernels in the timeline with the truth",
    "clock too coarse": "compare clock_resolution_s with the truth",
    "none": "compare every report with the truth, not only the last one",
}
