"""Marks to Canvas by its API, against a small imitation of the endpoints that its documentation names."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.marks import canvas_api
from edl_labs.course.marks.canvas_api import CanvasReport, read_canvas_times, send_to_canvas, write_canvas_times
from edl_labs.course.marks.hand_ins import HandIn
from edl_labs.course.marks.roster import read_times
from edl_labs.course.marks.student_marks import ExerciseMark, StudentMarks
from edl_labs.course.policy import CoursePolicy
from edl_labs.errors import EdlError, UsageError

pytest.importorskip("canvasapi", reason='the extra "canvas" is not installed')
STUDENTS = [
    {"id": 11, "display_name": "Ada Lovelace", "sis_user_id": "ada"},
    {"id": 12, "display_name": "Alan Turing"},
    {"id": 13, "display_name": "Not Here"},
]
SUBMISSIONS = [
    {"id": 1, "user_id": 12, "submitted_at": "2026-11-20T23:59:00Z"},
    {"id": 2, "user_id": 11, "submitted_at": "2026-11-19T08:00:00Z"},
    {"id": 3, "user_id": 13, "submitted_at": None},
]


class Canvas(HTTPServer):
    """What was asked of it, the grades that came, and the states of its one job."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Endpoint)
        self.asked: list[str] = []
        self.grades: dict[str, list[str]] = {}
        self.states = ["queued", "running", "completed"]
        self.refuses, self.says = 0, "no"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Endpoint(BaseHTTPRequestHandler):
    server: Canvas

    def do_GET(self) -> None:
        path, course = urlparse(self.path).path, "/api/v1/courses/7"
        known = {
            course: {"id": 7, "name": "Efficient deep learning"},
            f"{course}/assignments/8": {"id": 8, "course_id": 7, "points_possible": 20.0},
            f"{course}/assignments/5": {"id": 5, "course_id": 7, "grading_type": "pass_fail"},
            f"{course}/assignments/8/gradeable_students": STUDENTS,
            f"{course}/assignments/8/submissions": SUBMISSIONS,
        }
        if path == "/api/v1/progress/3":
            known[path] = {"id": 3, "workflow_state": self.server.states.pop(0), "message": "no room"}
        self.answer(known.get(path), 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.grades = parse_qs(body)
        ours = urlparse(self.path).path == "/api/v1/courses/7/assignments/8/submissions/update_grades"
        state = {"id": 3, "workflow_state": self.server.states.pop(0), "message": "no room"}
        self.answer(state if ours else None, 404)

    def answer(self, found: object, otherwise: int) -> None:
        self.server.asked.append(f"{self.command} {urlparse(self.path).path}")
        allowed = self.headers["Authorization"] == "Bearer good"
        code = self.server.refuses or (401 if not allowed else otherwise if found is None else 200)
        if code == 401:
            self.send_response(code)
            self.send_header("WWW-Authenticate", "Bearer")
        else:
            self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(found if code == 200 else {"errors": [{"message": self.server.says}]}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def canvas() -> Iterator[Canvas]:
    server = Canvas()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three students with marks; s2's number is known from the file that was collected."""
    essay = ExerciseMark("why", 0.0, 2.0, waiting=True)
    marks = (
        StudentMarks("ada", "Ada", "Lovelace", "", (), 17.5, 20.0),
        StudentMarks("s2", "", "", "", (essay,), 3.0, 20.0),
        StudentMarks("gone", "", "", "", (), 1.0, 20.0),
    )
    monkeypatch.setattr(canvas_api, "class_marks", lambda course, assignment: marks)
    monkeypatch.setattr(canvas_api, "hand_ins", lambda course, assignment: {"s2": HandIn("", user="12")})


def sent(canvas: Canvas, *, token: str = "good", number: int = 8, send: bool = True) -> CanvasReport:
    return send_to_canvas(
        "lab01_gpu_basics",
        url=canvas.url,
        course_number=7,
        assignment_number=number,
        token=token,
        course=Course.__new__(Course),
        send=send,
        wait=lambda seconds: None,
    )


def test_marks_go_in_one_request_to_those_whom_canvas_knows(canvas: Canvas):
    report = sent(canvas)

    assert {"grade_data[11][posted_grade]": ["17.5"], "grade_data[12][posted_grade]": ["3"]} == canvas.grades
    assert (("ada", 17.5), ("s2", 3.0)) == report.marks
    assert (("gone",), ("Not Here",), ("s2",)) == (report.unknown, report.without, report.waiting)
    assert (20.0, True, 1) == (report.possible, report.sent, report.exit_code)
    assert 2 == canvas.asked.count("GET /api/v1/progress/3")


def test_without_being_asked_nothing_is_sent(canvas: Canvas):
    report = sent(canvas, send=False)

    assert not report.sent
    assert not [line for line in canvas.asked if line.startswith("POST")]


def test_times_of_submission_are_written_as_collect_reads_them(canvas: Canvas, tmp_path: Path):
    times = read_canvas_times(url=canvas.url, course_number=7, assignment_number=8, token="good")
    write_canvas_times(tmp_path / "times.csv", times)

    assert {"11": "2026-11-19T08:00:00Z", "12": "2026-11-20T23:59:00Z"} == times
    assert {"11": 19, "12": 20} == {
        number: moment.day for number, moment in read_times(tmp_path / "times.csv", CoursePolicy(), None).items()
    }


@pytest.mark.parametrize(
    ("changed", "kind", "told"),
    [
        ({"token": "bad"}, UsageError, "rejects the token"),
        ({"token": ""}, UsageError, "there is no token"),
        ({"number": 9}, UsageError, "no such course or assignment"),
        ({"number": 5}, UsageError, "no points in Canvas"),
    ],
)
def test_what_is_wrong_is_said(canvas: Canvas, changed: dict[str, object], kind: type[EdlError], told: str):
    with pytest.raises(kind, match=told):
        sent(canvas, **changed)  # type: ignore[arg-type]


def test_a_job_that_fails_is_no_success(canvas: Canvas):
    canvas.states = ["queued", "failed"]
    with pytest.raises(EdlError, match="Canvas did not enter the marks") as error:
        sent(canvas)

    assert "no room" in str(error.value)


@pytest.mark.parametrize("code", [403, 429])
def test_too_many_requests_are_no_wrong_token(canvas: Canvas, code: int):
    """numbas/numbas-lti-provider#345, ucfopen/canvasapi#704: Canvas limits requests, by either status."""
    canvas.refuses, canvas.says = code, "403 Forbidden (Rate Limit Exceeded)"
    with pytest.raises(EdlError, match="no more requests for now") as error:
        sent(canvas)

    assert "wait for a minute" in str(error.value)
