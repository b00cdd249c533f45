"""The leaderboard: a table for each exercise whose judge adds numbers to the mark (`Outcome.entry`)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edl_labs.checks._judge import Outcome
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import defines
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.class_results import ClassResults
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.nbgrader_assignments import is_nbgraders
from edl_labs.course.grade.result import Result
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.marks.entry_timelines import NOT_KEPT, EntryTimelines, entry_timelines, panels, signed
from edl_labs.course.pages.shell import render
from edl_labs.errors import EdlError, NothingToDo, UsageError
from edl_labs.units import seconds
from edl_labs.values import Value


class NobodyRanked(NothingToDo):
    """No graded student has earned a score yet; the leaderboard starts with the first score."""


RANKED_BY = ("efficiency", "peak_bytes", "money")  # the first from the largest, the others from the smallest
_NAMES_TOLD = 20  # about three lines of a terminal
_UNFOLDED = 20  # places of a page with pictures: about 5 MB, and half a minute of a core
_REFRESHED_S = 20  # the page asks for itself anew so often while a class is graded
_COLOURS = ("amber", "blue", "bronze", "coral", "green", "indigo", "ivory", "jade", "lilac", "ruby", "silver", "teal")
_ANIMALS = (
    *("badger", "beaver", "bison", "crane", "dolphin", "falcon", "finch", "fox", "gecko", "hare", "heron", "ibex"),
    *("lynx", "marten", "newt", "orca", "otter", "owl", "panda", "puffin", "raven", "seal", "stork", "swift"),
)


@dataclass(frozen=True, repr=False)
class Standing(Value):
    """One row. `name` is what the page shows: a pseudonym unless names were requested."""

    OMITTED = ("timelines",)

    place: int
    name: str
    student: str
    efficiency: float
    """The efficiency, 0 to 1: the geometric mean over the secret cases."""
    peak_bytes: float
    money: float
    timelines: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    """The timelines that the judge kept; `entry_timelines` reads them."""


@dataclass(frozen=True, repr=False)
class Leaderboard(Value):
    """An exercise's standings, best first."""

    ROWS = "standings"

    assignment: str
    exercise: str
    standings: tuple[Standing, ...]


def leaderboards(assignment: str, *, course: Course | None = None, named: bool = False) -> tuple[Leaderboard, ...]:
    """A leaderboard for each exercise of the assignment that has entries, from what is graded so far.

    NobodyRanked where no result has one yet, NothingToDo where none of its exercises has a score. Nothing is graded,
    and students without points are left out.
    """
    course = course or Course.find_class()
    known = course.assignment(assignment)
    if not any(defines(type(one.spec), "leaderboard_metrics") for one in load_lab(assignment)):
        why = "none of its exercises has a score"
        raise NothingToDo(f"{assignment} has no leaderboard", why=why, next=f"run edl-labs report {assignment}")
    why = "no graded submission has an exercise with a score"
    nothing = NobodyRanked(f"{assignment} has no leaderboard", why=why, next=f"run edl-labs grade {assignment}")
    if not course.grading(assignment).is_dir():  # a grader would draw the class's seed
        raise nothing
    entered: dict[str, dict[str, Outcome]] = {}
    kept = ClassResults(course, known)
    secret = str(kept.draws.seed).encode()
    for student in course.students(assignment):
        for outcome in _outcomes(kept, course, assignment, student):
            if ranks(outcome.entry):
                entered.setdefault(outcome.name, {})[student] = outcome
    if not entered:
        raise nothing
    names = {} if named else pseudonyms({who for some in entered.values() for who in some}, secret)
    return tuple(_board(assignment, name, outcomes, names) for name, outcomes in sorted(entered.items()))


def _board(assignment: str, name: str, outcomes: Mapping[str, Outcome], names: Mapping[str, str]) -> Leaderboard:
    rows = standings({student: outcome.entry for student, outcome in outcomes.items()}, names)
    return Leaderboard(assignment, name, tuple(replace(r, timelines=outcomes[r.student].timelines) for r in rows))


def leaderboards_or_none(assignment: str, course: Course) -> tuple[Leaderboard, ...]:
    """The leaderboards with pseudonyms; none where the assignment has no exercise with a score, or is nbgrader's."""
    if is_nbgraders(course, assignment):
        return ()
    try:
        return leaderboards(assignment, course=course)
    except NothingToDo:
        return ()


def ranks(entry: Mapping[str, float]) -> bool:
    """Whether an entry has all that standings are made of."""
    return all(name in entry for name in RANKED_BY)


def standings(entries: Mapping[str, Mapping[str, float]], names: Mapping[str, str]) -> tuple[Standing, ...]:
    """Places by efficiency, ties by memory and then by money; who is equal in all shares a place.

    >>> like = {"efficiency": 0.5, "peak_bytes": 1e9, "money": 1.0}
    >>> rows = standings({"a": like, "b": {**like, "efficiency": 0.9}, "c": like}, {})
    >>> [(row.place, row.name) for row in rows]
    [(1, 'b'), (2, 'a'), (2, 'c')]
    """

    def key(student: str) -> tuple[float, float, float]:
        efficiency, peak_bytes, money = (entries[student][name] for name in RANKED_BY)
        return -efficiency, peak_bytes, money

    order = sorted(entries, key=lambda student: (key(student), names.get(student, student)))
    found: list[Standing] = []
    for at, student in enumerate(order):
        tied = at > 0 and key(student) == key(order[at - 1])
        place = found[-1].place if tied else at + 1
        efficiency, peak_bytes, money = (entries[student][n] for n in RANKED_BY)
        found.append(Standing(place, names.get(student, student), student, efficiency, peak_bytes, money))
    return tuple(found)


def pseudonyms(students: Iterable[str], secret: bytes) -> dict[str, str]:
    """A name for each student that is the same in each run and cannot be undone without the class's seed."""
    found: dict[str, str] = {}
    for student in sorted(students):
        number = int.from_bytes(hmac.digest(secret, f"leaderboard {student}".encode(), "sha256"), "big")
        colour, animal = _COLOURS[number % len(_COLOURS)], _ANIMALS[number // len(_COLOURS) % len(_ANIMALS)]
        name, again = f"{colour} {animal}", 2
        while name in found.values():
            name, again = f"{colour} {animal} {again}", again + 1
        found[student] = name
    return found


def write_page(
    assignment: str,
    boards: Iterable[Leaderboard],
    path: Path,
    *,
    refreshed: bool = False,
    instructor: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> None:
    """One HTML file that needs nothing else. `refreshed`: browsers load it anew while a class is graded.

    A student's program could write what it knows of a secret job into its memory, its cost or its timeline, for all to
    read. So the page has places and whole percents alone; with `instructor` it has all of it, and the first 20 rows of
    each board unfold into what ran when, next to the instructor's own. A page that is loaded anew unfolds nothing.
    """
    boards = tuple(boards)
    shown = [row for board in boards for row in board.standings[: _UNFOLDED if instructor and not refreshed else 0]]
    unfolded = {}
    for done, row in enumerate(shown):
        entry = entry_timelines(row.timelines)
        unfolded[row] = (entry, panels(entry, row.name, instructor=instructor) if entry else [])
        if progress is not None:
            progress(done + 1, len(shown), row.name)
    text = render(
        "leaderboard.html",
        assignment=assignment,
        boards=boards,
        refreshed_s=_REFRESHED_S if refreshed else 0,
        unfolded=unfolded,
        instructor=instructor,
        most_panels=max((len(shown) for _, shown in unfolded.values()), default=0) or 1,
        not_kept=NOT_KEPT,
        seconds=seconds,
        signed=signed,
    )
    write_atomically(path, text.encode("utf-8", "replace"))


def found_entry(boards: Iterable[Leaderboard], name: str) -> tuple[Leaderboard, Standing, EntryTimelines]:
    """The entry that boards show under a name, with its timelines; UsageError where there is none."""
    rows = [(board, row) for board in boards for row in board.standings]
    found = next(((board, row) for board, row in rows if row.name == name), None)
    if found is None:
        some = ", ".join(row.name for _, row in rows[:_NAMES_TOLD])
        raise UsageError(
            f"no entry is called {name}",
            why=f"the entries are {some}",
            next="use a name from the leaderboard, or a student's id with --named",
        )
    timelines = entry_timelines(found[1].timelines)
    if timelines is None:
        then = f"run edl-labs grade {found[0].assignment} --fresh"
        raise UsageError(f"{name} has no timeline", why=NOT_KEPT, next=then)
    return *found, timelines


def _outcomes(kept: ClassResults, course: Course, assignment: str, student: str) -> tuple[Outcome, ...]:
    folder = course.path("submitted", student=student, assignment=assignment)
    try:
        submission = read_submission(folder, assignment, limits=kept.limits)
    except EdlError:
        return ()
    result: Result | None = kept.graded(submission, student)
    return result.outcomes if result is not None else ()
