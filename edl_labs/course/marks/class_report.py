"""A class at a glance: how each exercise went, which mistake how often, how long it took, what looks alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from html import escape
from importlib import resources
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from edl_labs.course.grade.course_folder import CourseFolder
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.result import Result
from edl_labs.course.grade.submission import read_submission
from edl_labs.course.marks.similarity import Pair, similar_pairs
from edl_labs.course.marks.student_marks import StudentMarks, class_marks
from edl_labs.errors import EdlError

_SUSPICIOUS = ("tampered", "killed", "timeout", "unfenced", "inconclusive")
_BINS = 5
_PAIRS_SHOWN = 30


@dataclass(frozen=True)
class ExerciseGlance:
    """One exercise over the class: the share of points that each student got, and what students were told."""

    name: str
    max_points: float
    shares: tuple[float, ...]
    waiting: int = 0
    mistakes: tuple[tuple[str, int], ...] = ()
    not_attempted: int = 0

    @property
    def mean(self) -> float:
        """The mean share of the points, 0 to 1."""
        return sum(self.shares) / len(self.shares) if self.shares else 0.0

    def histogram(self) -> tuple[int, ...]:
        """Students by share: none of the points, four quarters (the last without full marks), all of them."""
        counts = [0] * (_BINS + 1)
        for share in self.shares:
            counts[0 if share <= 0 else _BINS if share >= 1 else min(1 + int(share * (_BINS - 1)), _BINS - 1)] += 1
        return tuple(counts)


@dataclass(frozen=True)
class Glance:
    """A class's work in one assignment."""

    assignment: str
    students: int
    points: tuple[float, ...]
    max_points: float
    exercises: tuple[ExerciseGlance, ...]
    minutes: tuple[float, ...]
    """Minutes that grading each submission took, by the wall clock."""
    flags: tuple[tuple[str, tuple[str, ...]], ...]
    pairs: tuple[Pair, ...]
    unread: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON, with a schema number."""
        exercises = [{**asdict(e), "mean": e.mean, "histogram": e.histogram()} for e in self.exercises]
        return {"schema": 1, **asdict(self), "exercises": exercises}


def glance(
    assignment: str, *, course: CourseFolder | None = None, least_alike: float = 0.8
) -> tuple[Glance, dict[str, dict[str, str]]]:
    """The report on a graded class, and the solutions by student and exercise that it compared."""
    course = course or CourseFolder.find()
    known = course.assignment(assignment)
    marks = class_marks(course, assignment)
    results: dict[str, Result] = {}
    solutions: dict[str, dict[str, str]] = {}
    unread: list[str] = []
    with Grader(course, known) as grader:
        for m in marks:
            folder = course.path("submitted", student=m.student, assignment=assignment)
            try:
                submission = read_submission(folder, assignment, limits=grader.limits)
            except EdlError:
                unread.append(m.student)
                continue
            found = grader.stored(submission)
            if found is not None:
                results[m.student] = found
            plan = make_plan(known, submission)
            cells = [c for c in plan.cells if c.keeps_id and c.known is not None and c.known.role == "solve"]
            work = {c.known.exercise: c.source for c in cells if c.known and c.source.strip() != c.known.source.strip()}
            solutions[m.student] = work
    staff = [cell.source for cell in known.cells if cell.kind == "code"]
    pairs = similar_pairs(solutions, staff=staff, least=least_alike)
    order = [cell.exercise for cell in known.cells if cell.role in ("check", "answer")]
    report = Glance(
        assignment=assignment,
        students=len(marks),
        points=tuple(m.points for m in marks),
        max_points=marks[0].max_points,
        exercises=tuple(_exercise(name, marks, results) for name in order),
        minutes=tuple(result.wall_s / 60 for result in results.values()),
        flags=tuple((s, odd) for s, r in results.items() if (odd := tuple(f for f in r.flags if f in _SUSPICIOUS))),
        pairs=tuple(pairs),
        unread=tuple(unread),
    )
    return report, solutions


def write_glance(report: Glance, solutions: dict[str, dict[str, str]], path: Path) -> None:
    """The report as one HTML file that needs nothing else."""
    style = resources.files("edl_labs.course.run").joinpath("page.css").read_text(encoding="utf-8")
    own = resources.files("edl_labs.course.marks").joinpath("class_report.css").read_text(encoding="utf-8")
    body = "\n".join((_head(report), *(_exercise_html(e) for e in report.exercises), _odd(report)))
    alike = _pairs_html(report.pairs, solutions)
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.assignment)}: the class</title>\n<style>\n{style}\n{own}\n</style>\n</head>\n<body>\n"
        f"<main>\n{body}\n{alike}\n</main>\n</body>\n</html>\n"
    )
    write_atomically(path, text.encode("utf-8", "replace"))


def bars(counts: Sequence[int], labels: Sequence[str]) -> str:
    """A histogram as an inline picture that takes its colours from the page; counts stand above the bars.

    >>> bars((0, 2), ("none", "all")).count("<rect")
    2
    """
    most, width, height, gap = max((*counts, 1)), 64, 90, 10
    parts = []
    for index, (count, label) in enumerate(zip(counts, labels, strict=True)):
        tall, left = round(height * count / most, 1), index * (width + gap)
        middle = left + width / 2
        parts.append(f'<rect x="{left}" y="{16 + height - tall}" width="{width}" height="{tall}" rx="2"/>')
        parts.append(f'<text x="{middle}" y="{11 + height - tall}">{count or ""}</text>')
        parts.append(f'<text x="{middle}" y="{height + 32}" class="dim">{escape(label)}</text>')
    whole = len(counts) * (width + gap)
    said = ", ".join(f"{label}: {count}" for count, label in zip(counts, labels, strict=True))
    size = f'viewBox="0 0 {whole} {height + 40}" width="{whole}" height="{height + 40}"'
    return f'<svg class="bars" {size} role="img" aria-label="{escape(said)}">{"".join(parts)}</svg>'


def _exercise(name: str, marks: Sequence[StudentMarks], results: dict[str, Result]) -> ExerciseGlance:
    mine = [(m.student, mark) for m in marks for mark in m.marks if mark.exercise == name]
    told: Counter[str] = Counter()
    idle = 0
    for student, _ in mine:
        outcomes = results[student].outcomes if student in results else ()
        for outcome in outcomes:
            if outcome.name == name and outcome.state == "not attempted":
                idle += 1
            elif outcome.name == name and outcome.state != "passed" and outcome.what:
                told[outcome.what] += 1
    shares = tuple(mark.points / mark.max_points for _, mark in mine if not mark.waiting and mark.max_points)
    waiting = sum(mark.waiting for _, mark in mine)
    most = mine[0][1].max_points if mine else 0.0
    return ExerciseGlance(name, most, shares, waiting, tuple(told.most_common(8)), idle)


def _head(report: Glance) -> str:
    edges = [report.max_points * n / 5 for n in range(6)]
    counts = [sum(low <= p < high for p in report.points) for low, high in pairwise(edges)]
    counts[-1] += sum(p >= report.max_points for p in report.points)
    labels = [f"{low:g}–{high:g}" for low, high in pairwise(edges)]
    middle = f"median {median(report.points):g} of {report.max_points:g} points" if report.points else ""
    times = f"; grading took {median(report.minutes):.1f} min in the median" if report.minutes else ""
    head = f"<h1>{escape(report.assignment)}</h1><p>{report.students} students, {middle}{times}.</p>"
    return f"<section>{head}{bars(counts, labels)}</section>"


def _exercise_html(exercise: ExerciseGlance) -> str:
    labels = ("none", "to 25 %", "to 50 %", "to 75 %", "below all", "all")
    told = "".join(f"<tr><td>{count}</td><td>{escape(what)}</td></tr>" for what, count in exercise.mistakes)
    table = f"<table><tbody>{told}</tbody></table>" if told else ""
    facts = [f"{exercise.mean:.0%} of {exercise.max_points:g} points on average"]
    facts += [f"{exercise.not_attempted} not attempted"] if exercise.not_attempted else []
    facts += [f"{exercise.waiting} not marked yet"] if exercise.waiting else []
    picture = bars(exercise.histogram(), labels) if exercise.shares else ""
    return f"<section><h2>{escape(exercise.name)}</h2><p>{'; '.join(facts)}.</p>{picture}{table}</section>"


def _odd(report: Glance) -> str:
    rows = [f"<tr><td>{escape(s)}</td><td>{escape(', '.join(flags))}</td></tr>" for s, flags in report.flags]
    rows += [f"<tr><td>{escape(s)}</td><td>could not be read</td></tr>" for s in report.unread]
    body = f"<table><tbody>{''.join(rows)}</tbody></table>" if rows else "<p>Nobody.</p>"
    return f"<section><h2>Look at these by hand</h2>{body}</section>"


def _pairs_html(pairs: Sequence[Pair], solutions: dict[str, dict[str, str]]) -> str:
    note = "<p>Shared fingerprints of code, names and given code aside. Alike is not copied: a person judges.</p>"
    shown = "".join(_pair_html(pair, solutions) for pair in pairs[:_PAIRS_SHOWN])
    more = f"<p>{len(pairs) - _PAIRS_SHOWN} more pairs in the JSON.</p>" if len(pairs) > _PAIRS_SHOWN else ""
    return f"<section><h2>Much alike</h2>{note}{shown or '<p>No pair.</p>'}{more}</section>"


def _pair_html(pair: Pair, solutions: dict[str, dict[str, str]]) -> str:
    tables = []
    for name in pair.exercises:
        left, right = (solutions[who].get(name, "") for who in (pair.first, pair.second))
        tables.append(f"<h4>{escape(name)}</h4><div class='pair'>{_side(left, right)}{_side(right, left)}</div>")
    title = f"{escape(pair.first)} and {escape(pair.second)}: {pair.share:.0%}"
    return f"<details><summary>{title} in {len(pair.exercises)} exercises</summary>{''.join(tables)}</details>"


def _side(text: str, other: str) -> str:
    """The lines of one side, those that the other side has too marked."""
    mine, theirs = text.split("\n"), other.split("\n")
    same: set[int] = set()
    for block in SequenceMatcher(
        None, [m.strip() for m in mine], [t.strip() for t in theirs], False
    ).get_matching_blocks():
        same.update(range(block.a, block.a + block.size))
    lines = (f"<mark>{escape(m)}</mark>" if i in same and m.strip() else escape(m) for i, m in enumerate(mine))
    return f"<pre>{chr(10).join(lines)}</pre>"
