"""The gradebook on a real PostgreSQL server, as `db_url` names it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from tests.course.course_fixture import LAB, POINTS, SOLUTIONS, Course

BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARIES is None, reason="no PostgreSQL server here: apt-get install postgresql"),
    pytest.mark.skipif(find_spec("psycopg") is None, reason="no driver for PostgreSQL: pip install 'psycopg[binary]'"),
]


@pytest.fixture
def db_url() -> Iterator[str]:
    """A server of this test's own, run by an ordinary user, on loopback and a free port."""
    assert BINARIES is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        data = Path(folder, "data")
        data.mkdir()
        if os.geteuid() == 0:
            shutil.chown(data, "postgres", "postgres")
        as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        control = [*as_user, str(BINARIES / "pg_ctl"), "-D", str(data), "-w"]
        settings = f"-c listen_addresses=127.0.0.1 -p {port} -k {data} -c fsync=off"
        _run([*as_user, str(BINARIES / "initdb"), "-D", str(data), "-A", "trust", "-U", "grader"])
        _run([*control, "-l", str(data / "log"), "-o", settings, "start"])
        try:
            _run([str(BINARIES / "createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", "grader", "marks"])
            yield f"postgresql+psycopg://grader@127.0.0.1:{port}/marks"
        finally:
            _run([*control, "-m", "immediate", "stop"])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr


def test_class_is_graded_into_postgresql_and_again_changes_nothing(
    released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db_url: str
):
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy"))
    for number in range(3):
        course.submit(f"s{number}", course.answered({"area": f"# {number}\narea = lambda w, h: w * h"}, prose="So."))
    reports = [grade(LAB, course=Repository(course.root, db_url)) for _ in range(2)]
    full = float(sum(POINTS[name] for name in SOLUTIONS))

    assert [[full] * 3] * 2 == [[row.points for row in report.rows] for report in reports]
    assert ["graded", "kept"] == [report.rows[0].state for report in reports]
    assert 3 == len(stored(db_url))


def stored(db_url: str) -> list[tuple[str, float]]:
    import psycopg

    query = (
        "select submitted_assignment.student_id, sum(grade.auto_score) from grade "
        "join submitted_notebook on grade.notebook_id = submitted_notebook.id "
        "join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id group by 1"
    )
    with psycopg.connect(db_url.replace("+psycopg", "")) as connection:
        return connection.execute(query).fetchall()
