"""A class at a time: resumable, idempotent, one writer, nobody's trouble is another's."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from random import Random

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels, classrun, grader, result
from edl_labs.course.grade.class_results import ClassResults
from edl_labs.course.grade.classrun import ClassProgress, ClassReport, grade
from edl_labs.course.grade.secret_cases import class_draws
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.feedback import feedback
from edl_labs.course.sandbox import Level, best_level
from edl_labs.course.sandbox.kernel import pool as kernel_pool
from edl_labs.errors import EdlError, NothingToDo, UsageError
from tests.course.course_fixture import LAB, POINTS, SOLUTIONS, Course, solve_cell
from tests.course.once import once

FULL = float(sum(POINTS[name] for name in SOLUTIONS))
PRELOAD = ("edl_labs", "numpy", "edl_labs.checks.evidence")


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels without torch: these tests are about the class, not about what is imported."""
    monkeypatch.setattr(class_kernels, "ALWAYS", PRELOAD)


@pytest.fixture
def course(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course of its own for one test."""
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    return course


@pytest.fixture
def graded(
    course: Course, released: Course, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Course:
    """A course of its own in which s00, s01 and s02 were graded."""

    def make(root: Path) -> None:
        shutil.copytree(released.root, root)
        monkeypatch.setenv("EDL_LABS_EXERCISES", str(root / "exercises"))
        for number in range(3):
            numbered(Course(root), number)
        run(Course(root))

    ready = once(tmp_path_factory, "class_graded", make)
    shutil.copytree(ready, course.root, dirs_exist_ok=True)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    return course


def patient(course: Course, *, but: str = "none of them") -> None:
    """Probes may take a minute, so that no mark hangs on how busy the machine is."""
    exercises = course.exercises / f"{LAB}.py"
    lines = exercises.read_text().splitlines(keepends=True)
    longer = (line if but in line else line.replace("timeout_s=2", "timeout_s=60") for line in lines)
    exercises.write_text("".join(longer))


def numbered(course: Course, number: int, *, sleep_s: float = 0.0) -> None:
    body = f"import time; time.sleep({sleep_s}); return width * height"
    course.submit(f"s{number:02}", course.answered({"area": f"# {number}\n{solve_cell('area', body=body)}"}))


def run(course: Course, **options: object) -> ClassReport:
    return grade(LAB, course=Repository(course.root), **options)  # type: ignore[arg-type]


def stored_marks(course: Course) -> dict[str, tuple[float | None, ...]]:
    """Every automatic mark in the gradebook, by student, read past nbgrader."""
    book = sqlite3.connect(course.root / "course" / "gradebook.db")
    rows = book.execute(
        "select submitted_assignment.student_id, base_cell.name, grade.auto_score from grade "
        "join base_cell on grade.cell_id = base_cell.id "
        "join submitted_notebook on grade.notebook_id = submitted_notebook.id "
        "join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id "
        "order by 1, 2"
    ).fetchall()
    book.close()
    found: dict[str, list[float | None]] = {}
    for student, _, score in rows:
        found.setdefault(student, []).append(score)
    return {student: tuple(scores) for student, scores in found.items()}


def test_class_has_a_row_for_everyone_and_progress_counts_them(course: Course):
    seen: list[ClassProgress] = []
    for number in range(3):
        numbered(course, number)
    course.submit("stub", course.released())
    report = run(course, jobs=2, progress=seen.append)

    assert ["s00", "s01", "s02", "stub"] == [row.student for row in report.rows]
    assert [FULL, FULL, FULL, 0.0] == [row.points for row in report.rows]
    assert [1, 2, 3, 4] == [step.done for step in seen]
    assert 0.0 == seen[-1].left_s
    assert 0 == report.exit_code


def test_second_run_repeats_nothing_and_changes_nothing(graded: Course):
    seed, marks = class_draws(Repository(graded.root).grading(LAB)).seed, stored_marks(graded)
    again = run(graded)

    assert ["kept"] * 3 == [row.state for row in again.rows]
    assert marks == stored_marks(graded)
    assert seed == again.seed


@pytest.mark.slow
def test_a_whole_run_grades_again_once_and_serves_for_the_other_too(course: Course):
    numbered(course, 0)
    states = [run(course, seed=1, all_cells=all_cells).rows[0].state for all_cells in (False, True, True, False)]
    shutil.rmtree(course.root / "course" / "grading" / LAB / "results")

    assert ["graded", "graded", "kept", "kept"] == states
    assert ["graded", "kept"] == [run(course, seed=1, all_cells=all_cells).rows[0].state for all_cells in (None, False)]


def test_what_was_graded_without_a_sandbox_is_in_the_report(course: Course):
    """Whoever reads results may sit at another machine than the one that graded."""
    wrong = {"area": solve_cell("area", body="return width + height")}
    course.submit("s00", course.answered(wrong))
    run(course, level=Level.UNSAFE)
    overview, _ = class_report(LAB, course=Repository(course.root))

    (area,) = (one for one in overview.exercises if one.name == "area")
    assert (("the area is wrong", 1),) == area.mistakes


@pytest.mark.slow
def test_another_seed_grades_again_to_the_same_marks(graded: Course):
    first, other = run(graded, only=["s00"]), run(graded, only=["s00"], seed=2)

    assert ["kept", "graded"] == [report.rows[0].state for report in (first, other)]
    assert first.rows[0].marks == other.rows[0].marks
    assert 2 == other.seed != first.seed


def test_nobodys_trouble_is_anothers(course: Course):
    numbered(course, 0)
    course.submit("cut_off", b'{"cells": [')
    course.submit("bomber", course.answered({"area": solve_cell("area", body="__import__('os')._exit(0)")}))
    folder = course.root / "course" / "submitted" / "linker" / LAB
    folder.mkdir(parents=True)
    (folder / f"{LAB}.ipynb").symlink_to(course.root / "build" / "source" / LAB / f"{LAB}.ipynb")
    (course.root / "course" / "submitted" / "empty" / LAB).mkdir(parents=True)
    report = run(course)
    states = {row.student: row.state for row in report.rows}

    assert {
        "s00": "graded",
        "bomber": "graded",
        "cut_off": "unreadable",
        "linker": "unreadable",
        "empty": "unreadable",
    } == states
    assert (FULL, FULL - 2) == (report.row("s00").points, report.row("bomber").points)
    assert "killed" in report.row("bomber").flags
    assert all(row.remarks for row in report.rows if row.state == "unreadable")
    assert 1 == report.exit_code


def test_a_students_own_module_is_imported_in_their_sandbox_alone(course: Course):
    imports = course.answered({"area": "from helpers import area"})
    for student in ("with", "without"):
        path = course.submit(student, imports)
    path.parent.parent.parent.joinpath("with", LAB, "helpers.py").write_text("def area(w, h):\n    return w * h\n")
    rows = {row.student: row for row in run(course).rows}

    assert {"with": 2.0, "without": 0.0} == {who: dict(row.marks)["area"] for who, row in rows.items()}
    assert not [remark for remark in rows["with"].remarks if "not used" in remark]


def test_only_grades_the_students_that_match(graded: Course):
    assert ["s01"] == [row.student for row in run(graded, only=["*1"]).rows]


def test_a_source_older_than_the_release_is_remarked_on_once(graded: Course):
    release = graded.root / "labs" / LAB / f"{LAB}.ipynb"
    notebook = graded.released()
    notebook.cells[0].metadata["edl_labs"] = {"role": "setup"}
    nbformat.write(notebook, release)

    report, whole = run(graded), run(graded, all_cells=True, only=["s00"])

    assert (1, 0) == (len(report.remarks), len(whole.remarks))
    assert "lacks 1 role" in report.remarks[0]


def test_nothing_to_grade_is_said(course: Course):
    with pytest.raises(NothingToDo, match="nothing to grade"):
        run(course)


def test_two_runs_of_one_assignment_do_not_meet(course: Course):
    numbered(course, 0)
    with (
        classrun._alone(Repository(course.root).grading(LAB)),
        pytest.raises(UsageError, match="is being graded"),
    ):
        run(course)


def test_trouble_of_our_own_is_no_students_zero(graded: Course, monkeypatch: pytest.MonkeyPatch):

    def no_kernel(self: object, **_: object) -> None:
        from edl_labs.errors import EdlError

        raise EdlError("the kernels' parent process has ended")

    monkeypatch.setattr(kernel_pool.KernelPool, "kernel", no_kernel)
    (bad,) = run(graded, fresh=True, only=["s00"]).rows

    assert "failed" == bad.state
    assert "parent process has ended" in bad.remarks[0]
    assert FULL == sum(score or 0 for score in stored_marks(graded)["s00"])


@pytest.mark.slow
def test_marks_given_by_hand_stay_until_the_prose_changes(course: Course):
    course.submit("writer", course.answered(prose="It is symmetric."))
    run(course)
    by_hand(course, "writer", 1.5)
    run(course, fresh=True)
    kept = prose_grade(course, "writer")
    course.submit("writer", course.answered(prose="Something else."))
    run(course)

    assert (1.5, False) == kept
    assert (1.5, True) == prose_grade(course, "writer")


def by_hand(course: Course, student: str, points: float) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'course' / 'gradebook.db'}", "edl") as book:
        grade = book.find_grade("why_square", LAB, LAB, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        book.db.commit()


def prose_grade(course: Course, student: str) -> tuple[float, bool]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'course' / 'gradebook.db'}", "edl") as book:
        grade = book.find_grade("why_square", LAB, LAB, student)
        return grade.manual_score, grade.needs_manual_grade


@pytest.mark.slow
def test_late_submission_is_flagged(course: Course):
    from nbgrader.api import Gradebook

    numbered(course, 0)
    (course.root / "course" / "submitted" / "s00" / LAB / "timestamp.txt").write_text("2026-01-03 12:00:00 UTC")
    with Gradebook(f"sqlite:///{course.root / 'course' / 'gradebook.db'}", "edl") as book:
        book.find_assignment(LAB).duedate = datetime(2026, 1, 2)
        book.db.commit()

    assert "late" in run(course).rows[0].flags


@pytest.mark.slow
def test_class_without_generate_assignment_is_entered_by_the_run(course: Course):
    numbered(course, 0)
    (course.root / "course" / "gradebook.db").unlink()
    report = run(course)

    assert FULL == report.rows[0].points
    assert "success" not in course.nbgrader("generate_feedback", LAB)
    assert (course.root / "course" / "feedback" / "s00" / LAB / f"{LAB}.html").is_file()


@pytest.mark.slow
def test_timeouts_are_flagged_and_cost_their_own(course: Course):
    patient(course, but='"area"')
    (course.root / "course.toml").write_text("[limits]\ncell_s = 3\n")
    course.submit("looper", course.answered({"area": solve_cell("area", body="while True: pass")}))
    row = run(course).rows[0]

    assert FULL - 2 == row.points
    assert "timeout" in row.flags


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [1.0, 4.0])
def test_killed_run_goes_on_where_it_was(course: Course, after_s: float):
    for number in range(6):
        numbered(course, number, sleep_s=0.1)
    process = subprocess.Popen(
        [sys.executable, "-c", _GRADER, str(course.root)], env=course.env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()  # the first mark is in
    time.sleep(after_s / 4)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = stored_marks(course)
    report = run(course)
    after = stored_marks(course)

    assert [FULL] * 6 == [row.points for row in report.rows]
    assert "kept" in [row.state for row in report.rows]
    assert before.items() <= after.items()
    assert 6 == len(after)


_GRADER = f"""
import sys
from pathlib import Path
from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.sandbox.kernel import pool
pool.USUAL_IMPORTS = {PRELOAD!r}
from edl_labs.course.grade.classrun import grade
grade({LAB!r}, course=Repository(Path(sys.argv[1])), jobs=1, progress=lambda p: print(p.done, flush=True))
"""


@pytest.mark.slow
def test_a_reference_that_failed_once_is_worked_out_again(course: Course, monkeypatch: pytest.MonkeyPatch):
    from edl_labs.errors import EdlError

    numbered(course, 0)
    right, tries = grader.reference, []

    def wrong_at_first(*given: object, **options: object) -> object:
        tries.append(1)
        if len(tries) == 1:
            raise EdlError("the solution's kernel ended")
        return right(*given, **options)

    monkeypatch.setattr(grader, "reference", wrong_at_first)

    assert ["graded"] == [row.state for row in run(course).rows]
    assert 2 == len(tries)


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(course: Course, monkeypatch: pytest.MonkeyPatch):
    for number in range(3):
        numbered(course, number)
    write, full = result.write_atomically, []

    def no_room(path: Path, data: bytes, **options: object) -> None:
        full.append(path)
        if len(full) > 2:  # two files a student
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(result, "write_atomically", no_room)
    with pytest.raises(EdlError, match="the disk is full") as told:
        run(course, jobs=1)
    monkeypatch.setattr(result, "write_atomically", write)

    assert "1 of 3 students are already in the gradebook" in told.value.why
    assert ["kept", "graded", "graded"] == [row.state for row in run(course, jobs=1).rows]


@pytest.mark.slow  # the test above goes the same way; what of SQLite is a full disk has a test beside `is_disk_full`
def test_a_full_gradebook_is_told_and_the_run_goes_on(course: Course, monkeypatch: pytest.MonkeyPatch):
    for number in range(2):
        numbered(course, number)

    def no_room(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    right = classrun.Writer.merge
    monkeypatch.setattr(classrun.Writer, "merge", no_room)
    with pytest.raises(EdlError, match="the disk is full") as told:
        run(course, jobs=1)
    monkeypatch.setattr(classrun.Writer, "merge", right)

    assert "0 of 2 students" in told.value.why
    assert [FULL] * 2 == [row.points for row in run(course, jobs=1).rows]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for a small class."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(folder: Path) -> Path:
    """Leave not a byte free, in a file of its own."""
    ballast = folder / "ballast"
    for size in (1 << 20, 1 << 12):
        with suppress(OSError), ballast.open("ab", buffering=0) as file:
            while file.write(bytes(size)) == size:
                pass
    return ballast


@pytest.mark.parametrize("done", [0, *(pytest.param(done, marks=pytest.mark.slow) for done in (1, 2))])
def test_a_file_system_without_room_is_told_and_the_run_goes_on(
    released: Course, small_disk: Path, monkeypatch: pytest.MonkeyPatch, done: int
):
    """Full before the first student, and after one and two: nothing of ours is faked."""
    shutil.copytree(released.root, small_disk / "course")
    course = Course(small_disk / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    for number in range(3):
        numbered(course, number)
    if not done:
        fill(small_disk)
    with pytest.raises(EdlError, match="the disk is full") as told:
        run(course, jobs=1, progress=lambda now: fill(small_disk) if now.done == done else None)
    kept = stored_marks(course) if done else {}
    (small_disk / "ballast").unlink()
    report = run(course, jobs=1)

    assert f"the marks of {done} of 3 students are already in the gradebook" in told.value.why
    assert "free space" in told.value.next
    assert done == len(kept)
    assert [FULL] * 3 == [row.points for row in report.rows]
    assert [row.state for row in report.rows].count("kept") >= done
    assert kept.items() <= stored_marks(course).items()


@pytest.mark.slow
def test_kernels_that_cannot_import_the_package_are_told_once_at_the_start(
    course: Course, monkeypatch: pytest.MonkeyPatch
):
    for number in range(2):
        numbered(course, number)
    monkeypatch.setattr(
        class_kernels, "_IMPORTS", class_kernels._IMPORTS.replace("try:", "try:\n    import no_such_module")
    )
    with pytest.raises(UsageError, match="kernels cannot import edl_labs") as told:
        run(course)

    assert "no_such_module" in told.value.why


MOMENTS = 50  # kills: between finished students, while one is entered, while one is graded


@pytest.mark.slow
@pytest.mark.parametrize("moments", [1, MOMENTS])
def test_kills_between_finished_students_change_nothing(course: Course, moments: int):
    """A run that is killed again and again ends in the gradebook and the feedback of a run that was left alone."""
    patient(course)
    students = 2 if moments == 1 else 4
    for number in range(students):
        numbered(course, number)
    run(course, jobs=1, seed=5)
    wanted = (stored_marks(course), pages_of(course))
    random = Random(7)
    for _ in range(moments):
        if len(stored_marks(course)) == students:
            forget(course)
        killed_run(course, done=random.randint(1, students - 1), later_s=random.choice((0.0, random.uniform(0.0, 0.4))))

        # Whoever was being entered when it was killed may have no marks yet, and never other ones.
        for student, marks in stored_marks(course).items():
            assert all(mark in (None, right) for mark, right in zip(marks, wanted[0][student], strict=True))
    run(course, jobs=1)

    assert wanted == (stored_marks(course), pages_of(course))


def killed_run(course: Course, *, done: int, later_s: float) -> None:
    """A run that is killed `later_s` after `done` more students were entered, unless it ends before."""
    command = [sys.executable, "-c", _GRADER, str(course.root)]
    process = subprocess.Popen(command, env=course.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(done):
        process.stdout.readline()
    time.sleep(later_s)
    process.kill()
    process.wait()


def pages_of(course: Course) -> dict[str, bytes]:
    """Everyone's feedback page."""
    folder = Repository(course.root)
    feedback(LAB, course=folder)
    students = folder.students(LAB)
    return {s: (folder.path("feedback", student=s, assignment=LAB) / f"{LAB}.html").read_bytes() for s in students}


def forget(course: Course) -> None:
    """Put the course back to before anything was graded, but for the seed and the solution's evidence."""
    shutil.rmtree(course.root / "course" / "autograded")
    shutil.rmtree(course.root / "course" / "grading" / LAB / "results")
    for path in (course.root / "course").glob("gradebook.db*"):  # and the journal of a run that was killed
        path.unlink()


@pytest.mark.slow
def test_the_same_submission_has_the_same_draw_however_often_it_is_graded(graded: Course):
    known = Repository(graded.root)
    first, again = (run(graded, fresh=fresh) for fresh in (False, True))
    draws = class_draws(known.grading(LAB))

    assert 8 == draws.count
    assert {("kept", "graded")} == {(a.state, b.state) for a, b in zip(first.rows, again.rows, strict=True)}
    assert [row.marks for row in first.rows] == [row.marks for row in again.rows]
    for student in known.students(LAB):
        submission = read_submission(known.path("submitted", student=student, assignment=LAB), LAB)
        found = ClassResults(known, known.assignment(LAB), level=best_level()).stored(submission, student)

        assert found is not None
        assert draws.number(student, submission.digest) == found.draw


@pytest.mark.slow
def test_a_machine_with_little_memory_grades_one_at_a_time(course: Course, monkeypatch: pytest.MonkeyPatch):
    for student in ("ann", "ben"):
        course.submit(student, course.answered())
    monkeypatch.setattr("edl_labs.course.grade.classrun.free_bytes", lambda: 4_000_000_000)

    assert 1 == run(course).jobs
