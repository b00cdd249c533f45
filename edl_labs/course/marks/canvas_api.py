"""Canvas through its API: sends the marks of a class in one request, and reads submission times.

Uses canvasapi (extra `canvas`) and five documented endpoints: the course, the assignment, its students, its
submissions, and `submissions/update_grades`, whose progress is followed to its end.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.marks.hand_ins import hand_ins
from edl_labs.course.marks.lms.learning_system import ClassMember, MarksFinder, first_and_last, written_number
from edl_labs.course.marks.student_marks import StudentMarks, class_marks
from edl_labs.errors import EdlError, UsageError
from edl_labs.values import Value

_LOOK_S, _LOOKS = 2.0, 150  # five minutes: Canvas enters a class of hundreds in seconds, later when it is busy
_TOKEN = "CANVAS_TOKEN"


@dataclass(frozen=True, repr=False)
class CanvasReport(Value):
    """Marks for Canvas, by student. `unknown` have marks here and are not in its course; `without` the other way round.

    `waiting` are students with unmarked prose; the marks so far count. `possible` is what Canvas has
    as the assignment's points, `max_points` what the lab has: marks are sent as they are.
    """

    DERIVED = ("exit_code",)

    assignment: str
    marks: tuple[tuple[str, float], ...]
    max_points: float
    possible: float
    unknown: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    sent: bool = False

    @property
    def exit_code(self) -> int:
        """0 every mark has its place; 1 some student with marks is not in Canvas's course."""
        return 1 if self.unknown else 0


def send_to_canvas(
    assignment: str,
    *,
    url: str,
    course_number: int,
    assignment_number: int,
    token: str,
    course: Course | None = None,
    send: bool = False,
    wait: Callable[[float], object] = time.sleep,
) -> CanvasReport:
    """Find each student's place in Canvas, and with `send` enter the marks there.

    UsageError for a wrong address, number or token; EdlError when Canvas does not enter the marks.
    """
    course = course or Course.find_class()
    marks = class_marks(course, assignment)
    numbers = {student: known.user for student, known in hand_ins(course, assignment).items()}
    with _told(url):
        there = _assignment(url, token, course_number, assignment_number)
        _need_points(there)
        students = [_member(user) for user in there.get_gradeable_students()]
        finder = MarksFinder(marks, numbers)
        found = {who.lms_id: mine for who in students if (mine := finder.find(who))}
        if send and found:
            _enter(there, {number: written_number(mine.points) for number, mine in found.items()}, wait)
    placed = {mine.student for mine in found.values()}
    return CanvasReport(
        assignment,
        tuple((mine.student, mine.points) for mine in found.values()),
        marks[0].max_points,
        float(getattr(there, "points_possible", None) or 0.0),
        unknown=_others(marks, placed),
        without=tuple(who.name for who in students if who.lms_id not in found),
        waiting=tuple(mine.student for mine in marks if mine.waiting),
        sent=send and bool(found),
    )


def _others(marks: Sequence[StudentMarks], placed: set[str]) -> tuple[str, ...]:
    return tuple(mine.student for mine in marks if mine.student not in placed)


def read_canvas_times(*, url: str, course_number: int, assignment_number: int, token: str) -> dict[str, str]:
    """When each student handed in (UTC, ISO 8601), by Canvas's number; errors as `send_to_canvas`."""
    with _told(url):
        found = _assignment(url, token, course_number, assignment_number).get_submissions()
        times = {str(one.user_id): str(getattr(one, "submitted_at", None) or "") for one in found}
    return {number: time for number, time in sorted(times.items()) if time}


def write_canvas_times(path: Path, times: Mapping[str, str]) -> None:
    """Write the table that `collect --times` reads."""
    lines = ["ID,submitted_at", *(f"{number},{time}" for number, time in times.items())]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _assignment(url: str, token: str, course_number: int, assignment_number: int) -> Any:
    if not token:
        why = "Canvas requires a token for every request"
        raise UsageError(
            "there is no token", why=why, next=f"create one in Canvas (Account, Settings), then export {_TOKEN}=…"
        )
    return _canvas(url, token).get_course(course_number).get_assignment(assignment_number)


def _need_points(there: Any) -> None:
    """UsageError for an assignment that is not graded in points: Canvas drops what does not fit, and says nothing."""
    kind = str(getattr(there, "grading_type", "points"))
    if kind in ("pass_fail", "not_graded"):
        why = f"Canvas displays its grade as {kind}, and would silently drop marks in points"
        then = "edit the assignment in Canvas so that its grade is displayed as points, then send the marks"
        raise UsageError("the assignment has no points in Canvas", why=why, next=then)


def _canvas(url: str, token: str) -> Any:
    try:
        module = importlib.import_module("canvasapi")
    except ImportError as error:
        raise UsageError(
            "canvasapi is not installed", why=str(error), next='run pip install "edl-labs[canvas]"'
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an address that is no HTTPS; a wrong one is refused when it is asked
        return module.Canvas(url, token)


def _member(user: Any) -> ClassMember:
    """A student as Canvas lists them: numbers and logins as far as the token may see them."""
    first, last = first_and_last(str(getattr(user, "display_name", "") or getattr(user, "name", "")))
    number = str(user.id)
    names = [str(found) for name in ("sis_user_id", "login_id") if (found := getattr(user, name, None))]
    return ClassMember(names[0] if names else number, first, last, lms_id=number, keys=(number, *names))


def _enter(there: Any, points: dict[str, str], wait: Callable[[float], object]) -> None:
    """All marks in one request, followed until Canvas says that they are in."""
    progress = there.submissions_bulk_update(grade_data={number: {"posted_grade": p} for number, p in points.items()})
    for _ in range(_LOOKS):
        if progress.workflow_state == "completed":
            return
        if progress.workflow_state == "failed":
            why = str(getattr(progress, "message", "") or "Canvas gave no reason")
            raise EdlError(
                "Canvas did not enter the marks",
                why=why,
                next="run the same command again: it sends all marks once more",
            )
        wait(_LOOK_S)
        progress = progress.query()
    why = "it was still working after five minutes"
    raise EdlError(
        "Canvas has not confirmed that the marks were entered",
        why=why,
        next="check in Canvas, then run the same command again",
    )


@contextmanager
def _told(url: str) -> Iterator[None]:
    """What canvasapi and the network raise, in our words."""
    try:
        yield
    except (EdlError, UsageError):
        raise
    except Exception as error:
        kind, why = type(error).__name__, str(error)[:300]
        if kind == "RateLimitExceeded" or "rate limit exceeded" in why.casefold():  # the second with status 403
            then = "wait for a minute, then run the same command again"
            raise EdlError("Canvas accepts no more requests for now", why=why, next=then) from None
        if kind in ("InvalidAccessToken", "Unauthorized", "Forbidden"):
            raise UsageError(
                "Canvas rejects the token", why=why, next=f"create a new one, and export {_TOKEN}"
            ) from None
        if kind == "ResourceDoesNotExist":
            then = "take both numbers from the assignment's address: /courses/NUMBER/assignments/NUMBER"
            raise UsageError("Canvas has no such course or assignment", why=why, next=then) from None
        if kind in ("ConnectionError", "ValueError", "MissingSchema", "InvalidURL", "JSONDecodeError", "Timeout"):
            raise UsageError(f"{url} does not respond like Canvas", why=why, next="use --url without /api/v1") from None
        raise EdlError(
            "Canvas did not do what was requested", why=f"{kind}: {why}", next="run the same command again"
        ) from None
