"""A class at a glance: results of each exercise, how often each mistake occurred, times, and similar submissions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

from edl_labs.checks.lab_facts import facts
from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.class_results import ClassResults
from edl_labs.course.grade.nbgrader_assignments import is_nbgraders
from edl_labs.course.grade.plan import MarkingPlan, make_plan
from edl_labs.course.grade.result import Result
from edl_labs.course.grade.submission import Submission
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.groups import Groups, read_groups
from edl_labs.course.marks.class_predictions import Predicted, PredictionOverview, class_predictions, predictions_in
from edl_labs.course.marks.feedback import unread_submissions
from edl_labs.course.marks.recording_flags import recording_flags
from edl_labs.course.marks.similarity import (
    TELLS_COMMON,
    Cluster,
    Pair,
    similar_clusters,
    similar_pairs,
    solution_prints,
)
from edl_labs.course.marks.student_marks import StudentMarks, class_marks
from edl_labs.errors import EdlError
from edl_labs.values import Value

# No lab imports from there, and the build refuses one that does.
# Apart, so that no text takes more than one pass.
_EXERCISES_PATH, _FROM_LIBRARY, _EXERCISES_NAME = map(
    re.compile, (r"edl_labs\s*\.\s*exercises\b", r"from\s+edl_labs\s+import\b", r"\bexercises\b")
)
_HINT = re.compile(r'"hint (\d) of \d(?: \(the last\))? for (\w{1,60}): ')  # as its output begins in a notebook's JSON
_BINS = 5  # bars that fit beside each other on a narrow page
_LEAST_RUNS = 5  # cells: of fewer, nothing can be said of a lab of forty
_BREAK_S = 20 * 60.0  # longer than anybody thinks about one cell in the trials
_MISTAKES_SHOWN = 8  # as many as a page has room for beside each histogram


@dataclass(frozen=True, repr=False)
class ExerciseOverview(Value):
    """One exercise over the class: the share of points that each student got, and the messages that students got."""

    DERIVED = ("mean", "histogram")

    name: str
    max_points: float
    shares: tuple[float, ...]
    waiting: int = 0
    """Written answers that are not yet marked. While there are any, `shares` covers only those that a person marked."""
    left_empty: int = 0
    """Written answers that are unchanged since the release: no points, and nothing to mark."""
    mistakes: tuple[tuple[str, int], ...] = ()
    not_attempted: int = 0
    examples: tuple[tuple[str, str], ...] = ()
    """For each of those mistakes, a student who made it."""
    hints: tuple[int, ...] = ()
    """For each student whose notebook still shows a hint of this exercise: the number of the last one, from 1."""

    @property
    def mean(self) -> float:
        """The mean share of the points, 0 to 1."""
        return sum(self.shares) / len(self.shares) if self.shares else 0.0

    @property
    def histogram(self) -> tuple[int, ...]:
        """Students by share: none of the points, four quarters (the last without full marks), all of them."""
        counts = [0] * (_BINS + 1)
        for share in self.shares:
            counts[0 if share <= 0 else _BINS if share >= 1 else min(1 + int(share * (_BINS - 1)), _BINS - 1)] += 1
        return tuple(counts)


@dataclass(frozen=True, repr=False)
class ClassOverview(Value):
    """A class's work in one assignment."""

    ROWS = "exercises"

    assignment: str
    students: int
    points: tuple[float, ...]
    max_points: float
    exercises: tuple[ExerciseOverview, ...]
    minutes: tuple[float, ...]
    """Minutes of wall-clock time that grading each submission took."""
    at_work: tuple[float, ...] = field(default=(), kw_only=True)
    """Minutes of work in each notebook that records when its cells ran."""
    flags: tuple[tuple[str, tuple[str, ...]], ...]
    pairs: tuple[Pair, ...]
    unread: tuple[str, ...] = ()
    why_unread: tuple[tuple[str, str], ...] = ()
    """Students whose submission cannot be graded, and the reason."""
    clusters: tuple[Cluster, ...] = ()
    notes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """By student, what was unusual about the notebook and was repaired or restored."""
    predictions: tuple[PredictionOverview, ...] = ()
    """The predictions of the class, if enough students made one: counts without names."""


def class_report(assignment: str, *, course: Course | None = None) -> tuple[ClassOverview, dict[str, dict[str, str]]]:
    """The report on a graded class, and the solutions by student and exercise that it compared."""
    course = course or Course.find_class()
    marks = class_marks(course, assignment)
    if is_nbgraders(course, assignment):
        return _of_nbgraders(assignment, marks), {}
    known = course.assignment(assignment)
    unread = unread_submissions(course, known)
    found = _read_class(course, known, [m.student for m in marks if m.student not in unread])
    results, solutions, importing = found.results, found.solutions, found.importing
    odd = {student: list(result.flags) for student, result in results.items()}
    for student in importing:
        odd.setdefault(student, []).append("imports exercises")
    grouped = read_groups(course.root, assignment)
    own = {student: work for student, work in solutions.items() if not _shown_for_group(grouped, student, solutions)}
    for student, flags in recording_flags({s: files for s, files in found.files.items() if s in own}).items():
        odd.setdefault(student, []).extend(flags)
    pairs, clusters = likenesses(known, own)
    order = [(cell.exercise, cell.role == "answer") for cell in known.cells if cell.role in ("check", "answer")]
    report = ClassOverview(
        assignment=assignment,
        students=len(marks),
        points=tuple(m.points for m in marks),
        max_points=marks[0].max_points,
        exercises=tuple(
            replace(_exercise(name, marks, results, is_prose=is_prose), hints=tuple(found.hints.get(name, ())))
            for name, is_prose in order
        ),
        notes=tuple((student, result.notes) for student, result in results.items() if result.notes),
        at_work=tuple(found.at_work),
        predictions=class_predictions(known.cells, {s: found.predictions[s] for s in own if s in found.predictions}),
        minutes=tuple(result.usage.wall_s / 60 for result in results.values()),
        flags=tuple((student, tuple(flags)) for student, flags in odd.items() if flags),
        pairs=tuple(pairs),
        clusters=tuple(clusters),
        unread=tuple(sorted(unread)),
        why_unread=tuple((student, problem.what) for student, problem in sorted(unread.items())),
    )
    return report, solutions


def _of_nbgraders(assignment: str, marks: Sequence[StudentMarks]) -> ClassOverview:
    """What marks alone tell of an assignment that nbgrader's rules graded."""
    names = [mark.exercise for mark in marks[0].marks]
    prose = {mark.exercise for m in marks for mark in m.marks if mark.by_hand or mark.waiting}
    return ClassOverview(
        assignment=assignment,
        students=len(marks),
        points=tuple(m.points for m in marks),
        max_points=marks[0].max_points,
        exercises=tuple(_exercise(name, marks, {}, is_prose=name in prose) for name in names),
        minutes=(),
        flags=tuple((m.student, ("trusting",)) for m in marks),
        pairs=(),
    )


def likenesses(known: Assignment, own: Mapping[str, Mapping[str, str]]) -> tuple[list[Pair], list[Cluster]]:
    """Whose work is much alike, by pairs and by circles, where that is neither released nor, for circles, an answer.

    With few students, only the solution shows the natural way to write it: it is no likeness there.
    """
    staff = [cell.source for cell in known.cells if cell.kind == "code"]
    answers = [*staff, *(cell.solution for cell in known.cells if cell.kind == "code"), *_code_of_hints(known)]
    prints = {student: solution_prints(work) for student, work in own.items()}
    pairs = similar_pairs(prints, staff=staff if len(own) >= TELLS_COMMON else answers)
    return pairs, similar_clusters(prints, staff=answers)


@dataclass
class _ClassRead:
    """By student: the result that is kept, and the work by exercise; who imports from the exercises themselves.

    `hints`, by exercise: how far each student who shows any went.
    """

    results: dict[str, Result] = field(default_factory=dict)
    solutions: dict[str, dict[str, str]] = field(default_factory=dict)
    importing: list[str] = field(default_factory=list)
    hints: dict[str, list[int]] = field(default_factory=dict)
    at_work: list[float] = field(default_factory=list)
    files: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    predictions: dict[str, dict[str, Predicted]] = field(default_factory=dict)


def _read_class(course: Course, known: Assignment, students: Sequence[str]) -> _ClassRead:
    read = _ClassRead()
    kept = ClassResults(course, known)
    for student in students:
        folder = course.path("submitted", student=student, assignment=known.name)
        try:
            submission = read_submission(folder, known.name, limits=kept.limits)
        except EdlError:
            continue  # marks of a hand-in that is no longer there
        found = kept.graded(submission, student)
        if found is not None:
            read.results[student] = found
        plan = make_plan(known, submission)
        if any(exercise.spec.hand_ins for exercise in known.exercises):
            read.files[student] = submission.files
        read.solutions[student] = _own_work(plan)
        read.predictions[student] = predictions_in(submission)
        read.importing += [student] if any(imports_exercises(cell.source) for cell in plan.cells) else []
        at_work = minutes_at_work(submission)
        read.at_work += [] if at_work is None else [at_work]
        for name, number in shown_hints(submission).items():
            read.hints.setdefault(name, []).append(number)
    return read


def shown_hints(submission: Submission) -> dict[str, int]:
    """By exercise, the number of the furthest hint whose output stands in a notebook: what its student left there.

    A student who clears the outputs shows none, and no mark looks at them.
    """
    found: dict[str, int] = {}
    for cell in submission.cells:
        for number, name in _HINT.findall(cell.outputs.decode("utf-8", "replace")):
            found[name] = max(found.get(name, 0), int(number))
    return found


def minutes_at_work(submission: Submission) -> float | None:
    """Minutes between the cells' last runs, breaks left out; None where the notebook does not record when they ran.

    JupyterLab records that only where a student has switched it on. What ran again counts once, at its last run.
    """
    moments = []
    for cell in submission.cells:
        with suppress(ValueError):
            moments.append(datetime.fromisoformat(cell.ran_at).replace(tzinfo=UTC) if cell.ran_at else None)
    known = sorted(moment for moment in moments if moment is not None)
    if len(known) < _LEAST_RUNS:
        return None
    gaps = ((after - before).total_seconds() for before, after in pairwise(known))
    return sum(gap for gap in gaps if gap <= _BREAK_S) / 60


def imports_exercises(source: str) -> bool:
    """Whether a cell reaches for the exercises' own modules or the judge's part of them, however it imports them."""
    lines = ((line, _FROM_LIBRARY.search(line)) for line in source.split("\n"))
    named = (_EXERCISES_NAME.search(line, found.end()) for line, found in lines if found)
    return bool(_EXERCISES_PATH.search(source)) or any(named)


def _own_work(plan: MarkingPlan) -> dict[str, str]:
    """The source of each solve cell that is not as it was released, by exercise."""
    cells = [(c, c.known) for c in plan.cells if c.keeps_id and c.known is not None and c.known.role == "solve"]
    return {known.exercise: cell.source for cell, known in cells if not known.is_released(cell.source)}


def _exercise(
    name: str, marks: Sequence[StudentMarks], results: dict[str, Result], *, is_prose: bool
) -> ExerciseOverview:
    mine = [(m.student, mark) for m in marks for mark in m.marks if mark.exercise == name]
    told: Counter[str] = Counter()
    who: dict[str, str] = {}
    idle = 0
    for student, _ in mine:
        outcomes = results[student].outcomes if student in results else ()
        for outcome in outcomes:
            if outcome.name == name and outcome.state == "not attempted":
                idle += 1
            elif outcome.name == name and outcome.state != "passed" and outcome.what:
                told[outcome.what] += 1
                who.setdefault(outcome.what, student)
    waiting = sum(mark.waiting for _, mark in mine)
    empty = sum(not (mark.by_hand or mark.waiting) for _, mark in mine) if is_prose else 0
    # Who left prose empty has a zero at once; until the others are marked, a mean with those alone says nothing.
    counting = (mark for _, mark in mine if (mark.by_hand if is_prose and waiting else mark.counts))
    shares = tuple(mark.points / mark.max_points for mark in counting if mark.max_points)
    most = mine[0][1].max_points if mine else 0.0
    mistakes = tuple(told.most_common(_MISTAKES_SHOWN))
    examples = tuple((what, who[what]) for what, _ in mistakes)
    return ExerciseOverview(name, most, shares, waiting, empty, mistakes, idle, examples)


def _shown_for_group(groups: Groups, student: str, solutions: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the same work is there already, under another name of the student's group."""
    before = (mate for mate in groups.mates(student) if mate < student)
    return any(solutions.get(mate) == solutions[student] for mate in before)


def _code_of_hints(known: Assignment) -> list[str]:
    """What stands as code in the hints: whoever follows one writes that."""
    try:
        hints = [hint for e in known.exercises for hint in facts(known.name).exercise(e.name).hints]
    except (EdlError, KeyError):
        return []
    return [code for hint in hints for code in re.findall(r"`([^`]+)`", hint)]
