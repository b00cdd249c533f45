"""broken_timers: naming the fault of a timer from what it reported."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.errors import Wrong
from edl_labs.exercises.lab01_gpu_basics.timer_slips import known_timer_slip
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
KERNEL, CHECK = "kernel", "check"  # what is timed, and what compares the results afterwards
_SHOWN_ROW = "stream 0"  # where the kernels of plain reports run, one of each fault
SHOWN_CALLS = 4  # their names fit on a line


@exercise("broken_timers")
class BrokenTimers(Exercise):
    """Name what is wrong with a timer from what it reported, the truth and the timeline.

    `student.name_fault(report)` gives one of FAULTS; a plain timer and three odd ones of each, corrected for chance and
    for what the plain ones give away, whose answers goldens hold.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.name_fault(given)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in FAULTS:
            raise Wrong(
                f"{got[:40]!r} is not one of the seven answers",
                why=f"the seven are: {', '.join(FAULTS)}",
                next="return one of them",
            )
        if got != want:
            raise Wrong(f"this timer's fault is not {got!r}", why=_IF[got], next=_NEXT[got])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The rule that gives all answers, if it is a known one."""
        return known_timer_slip(cases, got, want)

    def is_public(self, case: Any) -> bool:
        """The plain reports: with all of them, naming the most similar one would need no reason."""
        return any(span["row"] == _SHOWN_ROW for span in case["timeline"])

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond the plain ones and those that luck can bring."""
        return score_above_chance(fractions, answers=len(FAULTS), shown=len(FAULTS))

    def format_case(self, case: Any) -> str:
        rows = [
            f"  {counted(calls, 'call'):>8}: {seconds(value)} per call"
            for calls, value in zip(case["calls"], case["seconds_per_call"], strict=True)
        ]
        return "\n".join(
            [
                f"true time {seconds(case['true_seconds_per_call'])} per call; a launch takes "
                f"{seconds(case['launch_s'])}; "
                f"the clock's step is {seconds(case['clock_resolution_s'])}",
                *rows,
                f"  timeline of {SHOWN_CALLS} calls, on the host: " + _host(case["timeline"]),
            ]
        )


def _host(timeline: Any) -> str:
    spans = sorted((span for span in timeline if span["row"] == "host"), key=lambda span: span["start_s"])
    return ", ".join(f"{span['kind']} {span['name']}" for span in spans)


_IF = {
    "no sync": "a timer without a sync times only the launches: there is no synchronisation before its last reading",
    "sync per call": "with a sync after each call, launch and kernel times add up, and the host waits once per call",
    "cold first call": "a cold first call loads its kernel between the readings, only once, however many calls follow",
    "wrong stream": "a sync on another stream does not wait for the kernels: they still run at the last reading",
    "cache-warm": "if the data come from the cache, the kernels themselves take less than the true time",
    "clock too coarse": "a coarse clock's step is longer than a call, and reports are rounded to such steps",
    "none": "a correct timer reports nearly the true time, and comes closer with more calls",
}
_NEXT = {
    "no sync": "compare the longest run with launch_s, and look for a synchronisation before the last reading",
    "sync per call": "count the waits before the last reading of the clock",
    "cold first call": "is (reported time - true time) × calls the same for each run? What was loaded, and when?",
    "wrong stream": "when does the last of the timed kernels end, and when was the clock read?",
    "cache-warm": "compare the duration of the kernels in the timeline with the true time",
    "clock too coarse": "compare clock_resolution_s with the true time",
    "none": "compare each report with the true time: what would a correct timer do before its last reading?",
}
