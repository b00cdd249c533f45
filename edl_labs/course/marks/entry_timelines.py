"""A leaderboard's entry step by step: its timeline in one secret job, next to that of the instructor's program.

All of it is read from stored results, where the judge keeps it with the mark: no student's code runs again.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from edl_labs.course.course_folder import Course
from edl_labs.course.policy import read_policy
from edl_labs.errors import EdlError
from edl_labs.units import seconds
from edl_labs.values import Value
from edl_labs.virtual.budget import StepTime, TrainingSteps, gap_parts

NOT_KEPT = "this entry was graded before timelines were kept: grade it again to see its timeline"
INSTRUCTORS = "the instructor's"
_ASIDE = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE[^>]*>", re.DOTALL)
_FONTS = re.compile(r"font-family: [^;\"]*")
_DECIMALS = re.compile(r"(?<=[ \"(])-?\d+\.\d{3,}(?=[ \")])")
_DOT = re.compile(r"M (-?[\d.]+) (-?[\d.]+)((?: C(?: -?[\d.]+){6}){8}) z")
_PATH = re.compile(r'<path d="([^"]*)"( clip-path="[^"]*" style="[^"]*")/>')
_TOLD = {"kernels": "kernels", "copy": "copies", "sum": "sums", "others": "other GPUs", "host": "host"}


@dataclass(frozen=True, repr=False)
class EntryTimelines(Value):
    """Two runs of one secret job, which `case` names in words."""

    case: str
    theirs: TrainingSteps
    reference: TrainingSteps

    def rows(self) -> list[StepRow]:
        """Each step of both, and the whole run last."""
        pairs = zip(self.theirs.steps, self.reference.steps, strict=True)
        found = [StepRow(str(number), mine, its) for number, (mine, its) in enumerate(pairs)]
        return [*found, StepRow("all", _whole(self.theirs), _whole(self.reference))]

    def to_chrome_trace(self, name: str) -> dict[str, Any]:
        """Both as Chrome trace events, a process each; Perfetto opens them."""
        events: list[dict[str, Any]] = []
        for number, (who, run) in enumerate({name: self.theirs, INSTRUCTORS: self.reference}.items()):
            for event in run.timeline.to_chrome_trace()["traceEvents"]:
                named = {"args": {"name": who}} if event["name"] == "process_name" else {}
                events.append({**event, **named, "pid": number})
            for step, one in enumerate(run.steps):
                mark = {"name": f"step {step} ends", "ph": "i", "s": "p", "pid": number, "tid": 0}
                events.append({**mark, "ts": one.end_s * 1e6})
        return {"displayTimeUnit": "ns", "traceEvents": events}


@dataclass(frozen=True, repr=False)
class StepRow(Value):
    """One step of an entry and of the instructor's program: a line of the table."""

    DERIVED = ("difference_s", "gap")

    step: str
    theirs: StepTime
    reference: StepTime

    @property
    def difference_s(self) -> float:
        """By how much theirs takes longer."""
        return self.theirs.duration_s - self.reference.duration_s

    @property
    def gap(self) -> str:
        """Where the difference lies: in kernels' own time, or in what they waited for, the largest first."""
        parts = gap_parts(self.theirs, self.reference)
        return ", ".join(f"{_TOLD[name]} {signed(value)}" for name, value in parts.items()) or "about the same"

    @property
    def waited(self) -> str:
        """What theirs waited for, without the instructor's."""
        parts = sorted(self.theirs.parts().items(), key=lambda one: -one[1])
        least_s = 0.005 * self.theirs.duration_s  # what a table of two or three figures shows
        told = [f"{_TOLD[name]} {seconds(value)}" for name, value in parts if name != "kernels" and value > least_s]
        return ", ".join(told) or "almost nothing"


def entry_timelines(kept: Mapping[str, Any]) -> EntryTimelines | None:
    """What a stored result keeps of an entry; None where there is nothing, or nothing that can be read."""
    try:
        theirs, reference = (TrainingSteps.from_plain(kept[who]) for who in ("theirs", "reference"))
        if type(kept["case"]) is not str or len(theirs.steps) != len(reference.steps):
            return None
    except (EdlError, KeyError, TypeError):
        return None
    return EntryTimelines(kept["case"], theirs, reference)


def signed(time_s: float) -> str:
    """A difference of times with its sign.

    >>> signed(0.0015), signed(-0.0015)
    ('+1.5 ms', '−1.5 ms')
    """
    return f"{'−' if time_s < 0 else '+'}{seconds(abs(time_s))}"


def is_over(course: Course, assignment: str, *, now: datetime | None = None) -> bool:
    """Whether the assignment's last due date in course.toml, extensions too, has passed; False where it has none."""
    dates = read_policy(course.root).dates(assignment)
    moments = [moment for moment in (dates.due, *dates.extensions.values()) if moment is not None]
    return bool(moments) and (now or datetime.now(UTC)) > max(moments)


@dataclass(frozen=True)
class Panel:
    """One picture of an entry on a page: `address` holds all of the image, `shows` says it in words."""

    name: str
    address: str
    shows: str


def panels(entry: EntryTimelines, name: str, *, instructor: bool) -> list[Panel]:
    """The whole run, then each step, `instructor`'s above; some 2 s of a core, so a page has a bounded number."""
    runs = {INSTRUCTORS: entry.reference, name: entry.theirs} if instructor else {name: entry.theirs}
    rows = {"whole run": None, **{f"step {number}": number for number in range(len(entry.theirs.steps))}}
    told = entry.rows()
    return [
        Panel(called, _drawn(runs, step), _in_words(told[-1 if step is None else step], name, instructor=instructor))
        for called, step in rows.items()
    ]


def _in_words(row: StepRow, name: str, *, instructor: bool) -> str:
    what = "The whole run" if row.step == "all" else f"Step {row.step}"
    said = f"{what} as a timeline: {name} {seconds(row.theirs.duration_s)}"
    if not instructor:
        return f"{said}; kernels waited for: {row.waited}."
    return f"{said}, {INSTRUCTORS} {seconds(row.reference.duration_s)}; where they differ: {row.gap}."


def _drawn(runs: Mapping[str, TrainingSteps], step: int | None) -> str:
    """A picture as an image's address that holds all of it."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from edl_labs.plots.step_pictures import draw_steps

    figure = draw_steps(runs, step=step)
    buffer = StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):  # letters of the reader's own, not outlines
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    return f"data:image/svg+xml;base64,{b64encode(compact_svg(buffer.getvalue()).encode()).decode('ascii')}"


def compact_svg(text: str) -> str:
    """matplotlib's SVG in a fifth of its bytes: bars of one look are one path, and numbers have two decimals."""
    text = _ASIDE.sub("", text)
    text = _FONTS.sub("font-family: sans-serif", text)
    text = _DECIMALS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)
    text = re.sub(r"\s+", " ", text)
    text = _DOT.sub(_as_arcs, text)
    parts = _PATH.split(text)  # what lies between, a path, its look, and so on
    made, at = [parts[0]], 1
    while at < len(parts):
        path, look, between = parts[at : at + 3]
        while not between.strip() and at + 3 < len(parts) and parts[at + 4] == look:
            at += 3
            path, between = path + parts[at], parts[at + 2]
        made += [f'<path d="{path}"{look}/>', between]
        at += 3
    return "".join(made)


def _as_arcs(dot: re.Match[str]) -> str:
    """A dot of a hatch, which matplotlib draws as eight curves from its lowest point, as two arcs."""
    heights = [float(dot[2]), *(float(number) for number in dot[3].split()[6::7])]
    r = round((max(heights) - min(heights)) / 2, 2)
    return f"M{dot[1]} {dot[2]}a{r} {r} 0 1 0 0 {-2 * r:g}a{r} {r} 0 1 0 0 {2 * r:g}z"


def _whole(run: TrainingSteps) -> StepTime:
    sums = [sum(values) for values in zip(*(one.parts().values() for one in run.steps), strict=True)]
    return StepTime(0.0, run.makespan_s, *sums)
