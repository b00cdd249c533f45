"""A class hands in traces of its own loops: what each is graded with, and what the report flags."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.classrun import grade
from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_report import class_report
from edl_labs.trace.packed_trace import FILES
from tests.course.course_fixture import Course, make_lab_course, solved

LAB = "lab05_profiling"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def scaled(data: bytes, factor: float) -> bytes:
    """The same trace on a machine that is slower by a factor, under another mark."""
    tree = json.loads(gzip.decompress(data))
    tree["edl_labs"]["pair"] = "a call of their own"
    for event in tree["traceEvents"]:
        event |= {key: event[key] * factor for key in ("ts", "dur") if key in event}
    return gzip.compress(json.dumps(tree).encode())


def hand_in(course: Course, student: str, files: dict[str, bytes]) -> None:
    """A student's notebook with these files beside it, and no others."""
    folder = course.submit(student, solved(course)).parent
    for name in FILES:
        (folder / name).unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def test_files_decide_the_points_and_copies_are_flagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    course = make_lab_course(tmp_path, LAB)
    own = course.handed_in
    secret = tmp_path / "secret.json.gz"
    secret.write_bytes(own[FILES[0]])
    hand_in(course, "ann", own)
    hand_in(course, "bob", {name: scaled(data, 1.2) for name, data in own.items()})
    hand_in(course, "cem", {})
    hand_in(course, "dee", dict.fromkeys(FILES, b"\x1f\x8b no trace"))
    hand_in(course, "eve", {})
    (tmp_path / "course" / "submitted" / "eve" / LAB / FILES[0]).symlink_to(secret)
    report = grade(LAB, course=Repository(course.root), jobs=2)
    marks = {row.student: dict(row.marks)["own_traces"] for row in report.rows}
    overview, solutions = class_report(LAB, course=Repository(course.root))
    flags = {student: "; ".join(found) for student, found in overview.flags}
    write_report(overview, solutions, tmp_path / "report.html")

    assert {"ann": 3, "bob": 3, "cem": 0, "dee": 0, "eve": 0} == marks
    assert "recording resembles bob's" in flags["ann"]
    assert "recording resembles ann's" in flags["bob"]
    assert "recording cannot be read" in flags["dee"]
    assert "recording" not in flags.get("cem", "")
    assert "recording resembles ann" in (tmp_path / "report.html").read_text(encoding="utf-8")
