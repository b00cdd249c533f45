"""After grading: lateness, feedback, marks out, grading again, the class at a glance."""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.collect import collect
from edl_labs.course.marks.export import export
from edl_labs.course.marks.feedback import feedback
from edl_labs.course.marks.regrade import regrade
from edl_labs.course.marks.student_marks import class_marks, open_book
from edl_labs.errors import UsageError
from tests.course.course_fixture import LAB, POINTS, SOLUTIONS, Course, solve_cell
from tests.course.once import once

PRELOAD = ("edl_labs", "numpy", "edl_labs.checks.evidence")
FULL = float(sum(POINTS[name] for name in SOLUTIONS))
ROSTER = 'id,first_name,last_name,email,canvas_id\nana,José,Álvarez,j@x.org,101\nann,Ann,"O\'Neil, Jr",a@x.org,102\n'
POLICY = f"""
[late]
per_day = 0.1
[[assignment]]
name = "{LAB}"
due = 2026-11-01T12:00:00
[assignment.extensions]
ann = 2026-11-09
"""
TIMES = "canvas_id,submitted_at\n101,2026-11-03T00:00:00Z\n102,2026-11-03T00:00:00Z\n"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> and [a](javascript:alert(3))"


def make_graded(root: Path, source: Path) -> None:
    """A course with two graded students: one is wrong and late, the other is late with an extension and hostile."""
    shutil.copytree(source, root)
    course = Course(root)
    (root / "roster.csv").write_text(ROSTER, encoding="utf-8")
    (root / "times.csv").write_text(TIMES, encoding="utf-8")
    (root / "course.toml").write_text(POLICY, encoding="utf-8")
    wrong = course.answered({"area": solve_cell("area", body="return width + height")}, prose="It is.")
    evil = course.answered(prose=EVIL)
    evil.cells[2]["source"] = (
        "repeats = 3\nfrom IPython.display import HTML, display\ndisplay(HTML('<script>1</script>'))"
    )
    with zipfile.ZipFile(root / "in.zip", "w") as packed:
        packed.writestr(f"alvarezjose_101_9001_{LAB}.ipynb", json.dumps(wrong))
        packed.writestr(f"oneilann_102_9002_{LAB}.ipynb", json.dumps(evil))
    folder = Repository(root)
    collect(LAB, root / "in.zip", kind="canvas", course=folder, roster=root / "roster.csv", times=root / "times.csv")
    graded = grade(LAB, course=folder, jobs=2)
    assert ["graded", "graded"] == [row.state for row in graded.rows], graded.rows


@pytest.fixture
def course(
    released: Course, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Course:
    """A graded course of its own for one test."""
    monkeypatch.setattr(class_kernels, "ALWAYS", PRELOAD)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(released.exercises))
    ready = once(tmp_path_factory, "term_graded", lambda root: make_graded(root, released.root))
    shutil.copytree(ready, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    return course


def folder(course: Course) -> Repository:
    return Repository(course.root)


def mark_by_hand(course: Course, student: str, points: float, comment: str = "") -> None:
    with open_book(folder(course)) as book:
        found = book.find_grade("why_square", LAB, LAB, student)
        found.manual_score, found.needs_manual_grade = points, False
        book.find_comment("why_square", LAB, LAB, student).manual_comment = comment
        book.db.commit()


def test_lateness_costs_what_the_course_says_and_an_extension_nothing(course: Course):
    late, extended = class_marks(folder(course), LAB)

    assert (pytest.approx(36 * 3600), 0.0) == (late.late_s, extended.late_s)
    assert late.penalty == pytest.approx(0.2 * (FULL - 2))
    assert (FULL, 0.0) == (extended.points, extended.penalty)


def test_the_penalty_follows_marks_given_by_hand(course: Course):
    mark_by_hand(course, "ana", 2.0)
    late = class_marks(folder(course), LAB)[0]

    assert late.penalty == pytest.approx(0.2 * FULL)
    assert () == late.waiting


def test_feedback_says_what_why_and_next_and_runs_nothing(course: Course):
    mark_by_hand(course, "ana", 1.5, "Good <b>start</b>.\nWhich outline?")
    report = feedback(LAB, course=folder(course), archive=course.root / "back.zip")
    ana, ann = ((course.root / path).read_text() for path in report.pages.values())

    assert "the area is wrong" in ana
    assert "measure again" in ana
    assert "Good &lt;b&gt;start&lt;/b&gt;." in ana
    assert "deducted" in ana
    assert "<script" not in ana + ann
    assert "javascript:" not in ann.replace("[a](javascript:alert(3))", "")  # as text that is read, not as a link
    assert "onerror=" not in ann.replace("&lt;img src=x onerror=", "")
    assert ("ann",) == report.waiting
    assert "Not yet marked: why_square" in ann
    assert "script-src" not in ana  # default-src 'none' forbids scripts
    assert "http" not in ana.replace("http-equiv", "")


@pytest.mark.slow
def test_an_old_mark_of_prose_handed_in_again_counts_everywhere_until_it_is_marked_anew(course: Course):
    mark_by_hand(course, "ann", 1.5, "@1a")
    (course.root / "feedback.toml").write_text('[why_square]\n1a = "Say why."\n')
    course.submit("ann", course.answered(prose="Another reason."))
    rows = grade(LAB, course=folder(course), only=["ann"]).rows
    ann = class_marks(folder(course), LAB)[1]
    page = (course.root / feedback(LAB, course=folder(course)).pages["ann"]).read_text()
    export(LAB, kind="csv", out=course.root / "marks.csv", course=folder(course))
    exported = list(csv.DictReader(io.StringIO((course.root / "marks.csv").read_text(encoding="utf-8-sig"))))[1]

    assert (FULL + 1.5, FULL + 1.5) == (rows[0].points, ann.points)
    assert ("why_square",) == ann.waiting
    assert (f"{FULL + 1.5:g}", "1.5") == (exported["points"], exported["why_square"])
    assert "1.5 of 2 points for the text that you handed in earlier" in page
    assert "<blockquote>Say why.</blockquote>" in page


def test_feedback_holds_no_secret_case_and_no_frame_of_ours(course: Course):
    from edl_labs.checks.lab_exercises import find
    from edl_labs.course.grade.secret_cases import class_draws

    draws = class_draws(course.root / "course" / "grading" / LAB)
    seeds = [draws.seed_of(number) for number in range(draws.count)]
    secret = {f"{side:g}" for seed in seeds for case in find("area").draw_cases(seed) for side in case["sides"]}
    page = (course.root / feedback(LAB, course=folder(course)).pages["ana"]).read_text()
    told = page.split("<h2>Your notebook")[0].split("</style>")[1]

    assert not any(f"({side}" in told or f" {side}." in told for side in secret if len(side) > 1)
    assert "edl_labs/course/grade" not in page


def test_feedback_is_packed_under_the_names_that_canvas_gave(course: Course):
    feedback(LAB, course=folder(course), archive=course.root / "back.zip")
    with zipfile.ZipFile(course.root / "back.zip") as packed:
        names = packed.namelist()

    assert [f"alvarezjose_101_9001_{LAB}_feedback.html", f"oneilann_102_9002_{LAB}_feedback.html"] == names


def test_canvas_marks_are_matched_by_id_and_nothing_else_changes(course: Course):
    given = (
        f"Student,ID,SIS User ID,SIS Login ID,Section,{LAB} (77),Other (78)\r\n"
        "    Points Possible,,,,,9,5\r\n"
        '"O\'Neil, Ann",102,,x,A,,4\r\n'
        '"=cmd, José",101,,y,A,1,\r\n'
        '"Nobody, Nora",103,,z,A,,\r\n'
    )
    (course.root / "canvas.csv").write_text(given, encoding="utf-8-sig")
    report = export(
        LAB, kind="canvas", out=course.root / "out.csv", template=course.root / "canvas.csv", course=folder(course)
    )
    data = (course.root / "out.csv").read_bytes()
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))

    assert data.startswith(b"\xef\xbb\xbf")
    assert ["102", "7", "4"] == [rows[2][1], rows[2][5], rows[2][6]]
    assert ["'=cmd, José", "4"] == [rows[3][0], rows[3][5]]
    assert ["Nora Nobody"] == list(report.without)
    assert given.split("\r\n")[1].split(",") == rows[1]
    assert 0 == report.exit_code


def test_who_handed_in_what_nobody_could_read_is_named_beside_a_table_of_its_own(course: Course):
    course.submit("zed", b"")
    report = export(LAB, kind="csv", out=course.root / "out.csv", course=folder(course))

    assert ("zed",) == report.without
    assert "zed" not in (course.root / "out.csv").read_text(encoding="utf-8-sig")


def test_marks_without_a_place_are_listed(course: Course):
    (course.root / "canvas.csv").write_text(f"Student,ID,{LAB} (7)\nAnn,102,\n", encoding="utf-8")
    report = export(
        LAB, kind="canvas", out=course.root / "out.csv", template=course.root / "canvas.csv", course=folder(course)
    )

    assert ["ana"] == [student for student, _ in report.unknown]
    assert 1 == report.exit_code


def test_moodle_marks_are_scaled_to_its_maximum(course: Course):
    (course.root / "m.csv").write_text(
        "Identifier;Full name;Email address;Grade;Maximum Grade\nParticipant 9;Ann;a@x.org;;100,00\n", encoding="utf-8"
    )
    export(LAB, kind="moodle", out=course.root / "out.csv", template=course.root / "m.csv", course=folder(course))

    grade = f"{100 * FULL / 9:.4f}".rstrip("0").replace(".", ",")
    assert f"Participant 9;Ann;a@x.org;{grade};" in (course.root / "out.csv").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [("Student,ID\nAnn,102\n", "no column"), ("a,b\n1,2\n", "no column ID"), (None, "is missing")],
)
def test_a_file_that_cannot_be_filled_is_refused_and_nothing_is_written(course: Course, text: str | None, said: str):
    template = None
    if text is not None:
        template = course.root / "given.csv"
        template.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        export(LAB, kind="canvas", out=course.root / "out.csv", template=template, course=folder(course))

    assert not (course.root / "out.csv").exists()


@pytest.mark.slow
def test_csv_has_a_column_for_each_exercise_and_nbgrader_writes_the_same(course: Course):
    export(LAB, kind="csv", out=course.root / "marks.csv", course=folder(course))
    course.nbgrader("export", "--exporter=edl_labs.course.marks.nbgrader_plugins.MarksExporter", "--to=by_nbgrader.csv")
    text = (course.root / "marks.csv").read_text(encoding="utf-8-sig")
    ana, ann = csv.DictReader(io.StringIO(text))

    assert ("0", "2", "O'Neil, Jr") == (ana["area"], ann["area"], ann["last_name"])
    assert text == (course.root / "by_nbgrader.csv").read_text(encoding="utf-8-sig")


@pytest.mark.slow
def test_a_mended_exercise_is_graded_again_and_marks_given_by_hand_stay(course: Course):
    mark_by_hand(course, "ann", 1.0, "Fine.")
    module = course.exercises / f"{LAB}.py"
    mended = module.read_text().replace(
        "if not close(got, want):", "if not close(got, want) and self.name != 'the area':"
    )
    module.write_text(mended)
    before = class_marks(folder(course), LAB)
    shown = regrade(LAB, ["area"], course=folder(course))
    unchanged = class_marks(folder(course), LAB)
    written = regrade(LAB, ["area"], course=folder(course), apply=True)
    after = class_marks(folder(course), LAB)

    assert before == unchanged
    assert [("ana", "area", 0.0, 2.0)] == [(c.student, c.exercise, c.before, c.after) for c in shown.changes]
    assert shown.changes == written.changes
    assert 2.0 == after[0].mark("area").points
    assert (1.0, "Fine.") == (after[1].mark("why_square").points, after[1].mark("why_square").comment)
    assert () == regrade(LAB, ["area"], course=folder(course)).changes


@pytest.mark.slow
def test_a_loop_without_end_is_waited_for_once(course: Course):
    """Its time-out stays what it was when the exercise's `compare` is corrected; every other check runs again."""
    course.submit("lea", course.answered({"area": solve_cell("area", body="while True: pass")}))
    first = grade(LAB, course=folder(course)).row("lea")
    module = course.exercises / f"{LAB}.py"
    module.write_text(module.read_text().replace("if not close(got, want):", "if not close(got, want):  # mended\n"))
    module.write_text(module.read_text().replace("it differs from the reference", "it is another number"))
    again = grade(LAB, course=folder(course)).row("lea")

    assert ("graded", "graded", first.flags) == (first.state, again.state, again.flags)
    assert first.marks == again.marks
    assert again.usage.own_cpu_s < 2.0 < first.usage.own_cpu_s  # the time of the check


def test_grading_again_what_is_not_there_is_refused(course: Course):
    with pytest.raises(UsageError, match="why_square"):
        regrade(LAB, ["why_square"], course=folder(course))


def test_the_class_at_a_glance(course: Course):
    report, solutions = class_report(LAB, course=folder(course))
    write_report(report, solutions, course.root / "glance.html")
    page = (course.root / "glance.html").read_text()
    area = next(e for e in report.exercises if e.name == "area")

    assert (2, 0.5, (1, 0, 0, 0, 0, 1)) == (report.students, area.mean, area.histogram)
    assert (("the area is wrong", 1),) == area.mistakes
    assert 2 == len(report.minutes)
    assert "the area is wrong" in page
    assert json.loads(json.dumps(report.to_json()))["schema"] == 1
