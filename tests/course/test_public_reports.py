"""What users of nbgrader, otter-grader, Canvas, Moodle and Artemis reported in public, tried here."""

from __future__ import annotations

import base64
import io
import json
import shutil
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import ClassReport, grade
from edl_labs.course.marks.archives import Entry, read_zip
from edl_labs.course.marks.chosen_files import choose
from edl_labs.course.marks.export import export
from edl_labs.course.marks.feedback import feedback
from edl_labs.course.marks.lms import canvas, moodle
from edl_labs.course.marks.lms.folder import plain_table
from edl_labs.course.marks.lms.learning_system import ClassMember
from edl_labs.course.marks.regrade import regrade
from edl_labs.course.marks.roster import read_roster
from edl_labs.course.marks.student_marks import ExerciseMark, StudentMarks, class_marks, open_book
from edl_labs.course.marks.tables import parse_table
from edl_labs.course.policy import DAY_S, LatePolicy
from tests.course.course_fixture import LAB, POINTS, SOLUTIONS, Course, cell_of, solve_cell
from tests.course.once import once

PROSE, LINKED, ODD_ID = "A square, for it is so.", "![](sketch.png)", "ann (a+b) [1]"
FULL = float(sum(POINTS[name] for name in SOLUTIONS))
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
WORKSHEET = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
    '"Participant 101","Ann Lee",a@x.org,Submitted,,"7,00",Yes,-,-,\n'
)


@dataclass(frozen=True)
class GradedClass:
    """A class of odd students, graded, with a page each."""

    course: Course
    report: ClassReport

    def points(self, student: str) -> float:
        """What the judge gave, of `FULL`."""
        return sum(points for _, points in self.report.row(student).marks)


def hand_ins(course: Course) -> dict[str, nbformat.NotebookNode]:
    """What each student sends: honest work in an odd form."""
    retyped = course.answered()
    for name in SOLUTIONS:
        check = cell_of(retyped, f"check_{name}")
        check["source"], check["cell_type"] = check["source"] + "\nlen([])", "code"
    retyped.cells.append(nbformat.v4.new_code_cell("area = 3\nhalves = longest = box_area = None"))
    turned = course.answered()
    for name, kind in (("area", "markdown"), ("halves", "raw")):
        cell_of(turned, name)["cell_type"] = kind
    turned.cells = [cell for cell in turned.cells if cell["id"] != "title"]
    turned.cells.insert(1, nbformat.v4.new_markdown_cell("my notes"))
    drawn = course.answered(prose="![sketch.png](attachment:sketch.png) shows it.")
    cell_of(drawn, "why_square")["attachments"] = {"sketch.png": {"image/png": PNG}}
    return {**odd_files(course), **odd_cells(course), **odd_code(course, retyped, turned, drawn)}


def odd_code(course: Course, retyped: Any, turned: Any, drawn: Any) -> dict[str, nbformat.NotebookNode]:
    return {
        "asks": course.answered({"area": solve_cell("area", body=SOLUTIONS["area"][1]) + '\nside = input("side? ")'}),
        "asks_first": course.answered({"longest": 'side = input("side? ")\n' + solve_cell("longest", body="return 0")}),
        "retyped": retyped,
        "turned": turned,
        "drawn": drawn,
    }


def odd_files(course: Course) -> dict[str, nbformat.NotebookNode]:
    """Files as other editors and other machines save them."""
    bare, old, elsewhere, colab = (course.answered(prose=PROSE) for _ in range(4))
    for notebook in (bare, old):
        notebook.nbformat_minor = 2
        for cell in notebook.cells:
            del cell["id"]
    for cell in bare.cells:
        cell.metadata = {}
    elsewhere.metadata["kernelspec"] = {"name": "conda-env-dl-py", "display_name": "Python [conda env:dl]"}
    mount = "from google.colab import drive\ndrive.mount('/content/drive')\n!pip install -q torch"
    colab.cells.insert(0, nbformat.v4.new_code_cell(mount))
    area = cell_of(colab, "area")
    area["source"] = f"%%time\n{area['source']}"
    return {"bare": bare, "old": old, "elsewhere": elsewhere, "colab": colab, ODD_ID: course.answered(prose=PROSE)}


def odd_cells(course: Course) -> dict[str, nbformat.NotebookNode]:
    """Cells that are not there, or there twice."""
    deleted, copied, emptied, linked = (course.answered(prose=text) for text in (PROSE, PROSE, "", LINKED))
    gone = (cell_of(deleted, name) for name in ("check_area", "check_halves"))
    deleted.cells = [cell for cell in deleted.cells if cell["id"] not in [one["id"] for one in gone]]
    for name in ("area", "check_area", "why_square"):
        copied.cells.append(cell_of(copied, name).copy())
    cell_of(emptied, "why_square")["source"] = ""
    return {"deleted": deleted, "copied": copied, "emptied": emptied, "linked": linked}


def make_graded(root: Path, source: Path) -> None:
    """Notebooks put into their folders by hand, without a time, then graded."""
    shutil.copytree(source, root)
    for student, notebook in hand_ins(Course(root)).items():
        path = Course(root).submit(student, notebook)
        if student == "linked":
            path.with_name("sketch.png").write_bytes(base64.b64decode(PNG))
    looper = Course(root).answered({"area": solve_cell("area", body="while True: pass")}, prose=PROSE)
    Course(root).submit("looper", looper)
    report = grade(LAB, course=Repository(root), jobs=2)
    (root / "report.json").write_text(json.dumps(report.to_json()))
    feedback(LAB, course=Repository(root))


@pytest.fixture
def graded(released: Course, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> GradedClass:
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy", "edl_labs.checks.evidence"))
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(released.exercises))
    root = once(tmp_path_factory, "public_reports", lambda folder: make_graded(folder, released.root))
    return GradedClass(Course(root), ClassReport.from_json((root / "report.json").read_text()))


@pytest.mark.slow
def test_a_cell_that_asks_for_input_costs_only_what_stands_below_it(graded: GradedClass):
    """jupyter/nbgrader#1844: input() passes "Validate" and fails in autograde."""
    assert graded.points("asks") == FULL
    assert graded.points("asks_first") == FULL - POINTS["longest"]


@pytest.mark.slow
def test_names_used_again_later_and_letters_typed_into_checks_cost_nothing(graded: GradedClass):
    """ucbds-infra/otter-grader#890: tests ran after the notebook. jupyter/nbgrader#1372: a locked cell was typed in."""
    assert graded.points("retyped") == FULL
    assert "tampered" in graded.report.row("retyped").flags


@pytest.mark.slow
def test_cells_of_another_kind_and_inserted_ones_stop_nobody(graded: GradedClass):
    """jupyter/nbgrader#1941: 15 of 300 notebooks broke the batch."""
    assert graded.points("turned") == FULL
    assert {"graded", "kept"} >= {row.state for row in graded.report.rows}  # kept: equal work is graded once


@pytest.mark.slow
def test_work_that_was_put_into_its_folder_by_hand_is_graded(graded: GradedClass):
    """jupyter/nbgrader#1409: submissions from a learning system, without a timestamp, were skipped."""
    assert {*hand_ins(graded.course), "looper"} == {row.student for row in graded.report.rows}


@pytest.mark.slow
def test_a_picture_attached_to_an_answer_is_seen_by_graders_and_in_feedback(graded: GradedClass):
    """jupyter/nbgrader#950: formgrader did not load it."""
    root = graded.course.root
    page = next((root / "course" / "feedback" / "drawn").rglob("*.html")).read_text()
    shown = nbformat.read(root / "course" / "autograded" / "drawn" / LAB / f"{LAB}.ipynb", as_version=4)

    assert PNG in page
    assert PNG == cell_of(shown, "why_square").attachments["sketch.png"]["image/png"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "student",
    [
        "bare",  # jupyter/nbgrader#1398, #424, microsoft/vscode-jupyter#2325: no ids, no metadata of any cell
        "old",  # ucbds-infra/otter-grader#701, microsoft/vscode-jupyter#11288: an older format
        "elsewhere",  # jupyter/nbgrader#417, #1375, ucbds-infra/otter-grader#706: no such kernel here
        "colab",  # what Colab's users have at the top: it fails here, and stops nobody
        ODD_ID,  # jupyter/nbgrader#928, #1403, #1738: letters that regular expressions read otherwise
        "deleted",  # jupyter/nbgrader#1682: check cells were deleted
        "copied",  # jupyter/nbgrader#1331, #1083, #108, sagemathinc/cocalc#6687: cells share an id
    ],
)
def test_honest_work_in_an_odd_file_has_all_its_points_and_waits_for_its_prose_alone(graded: GradedClass, student: str):
    marks = next(m for m in class_marks(Repository(graded.course.root), LAB) if m.student == student)

    assert graded.points(student) == FULL
    assert ("why_square",) == marks.waiting


@pytest.mark.slow
def test_an_answer_that_was_emptied_is_zero_and_waits_for_nobody(graded: GradedClass):
    """jupyter/nbgrader#993, #781: it needed grading for ever, and had no box to grade it in."""
    marks = next(m for m in class_marks(Repository(graded.course.root), LAB) if m.student == "emptied")

    assert () == marks.waiting
    assert 0.0 == marks.mark("why_square").points


@pytest.mark.slow
def test_a_picture_beside_the_notebook_is_named_where_the_answer_shows_it(graded: GradedClass):
    """ucbds-infra/otter-grader#764: files that students put into their notebooks were not there any more."""
    marks = next(m for m in class_marks(Repository(graded.course.root), LAB) if m.student == "linked")

    assert ("why_square",) == marks.waiting
    assert "files that were not used: sketch.png" in graded.report.row("linked").remarks


@pytest.mark.slow
def test_a_loop_without_end_costs_its_own_points_and_is_graded(graded: GradedClass):
    """hazelgrove/hazel#1981: full marks. jupyter/nbgrader#1033: "needs autograding". otter-grader#469: all was lost."""
    root = graded.course.root / "course" / "autograded" / "looper"

    assert FULL - POINTS["area"] == graded.points("looper")
    assert (root / LAB / f"{LAB}.ipynb").is_file()


@pytest.fixture
def own(graded: GradedClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A copy of the graded class, to change."""
    shutil.copytree(graded.course.root, tmp_path / "own")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(tmp_path / "own" / "exercises"))
    return Course(tmp_path / "own")


def by_hand(course: Course, student: str, **given: object) -> None:
    with open_book(Repository(course.root)) as book:
        grade_of = book.find_grade("why_square", LAB, LAB, student)
        for name, value in given.items():
            setattr(grade_of, name, value)
        book.db.commit()


@pytest.mark.slow
def test_extra_credit_is_in_every_total(own: Course):
    """jupyter/nbgrader#488: a person gives more than the most."""
    by_hand(own, "bare", manual_score=2.0, extra_credit=1.5, needs_manual_grade=False)
    folder = Repository(own.root)
    marks = next(m for m in class_marks(folder, LAB) if m.student == "bare")
    report = export(LAB, kind="csv", out=own.root / "marks.csv", course=folder)
    feedback(LAB, course=folder, only=["bare"])
    page = next((own.root / "course" / "feedback" / "bare").rglob("*.html")).read_text()

    assert FULL + 3.5 == marks.points == dict(report.filled)["bare"]
    assert f"{FULL + 3.5:g}" in page


@pytest.mark.slow
def test_autograding_again_keeps_what_a_person_gave(own: Course):
    """RunestoneInteractive/RunestoneServer#1013: it deleted manual marks."""
    by_hand(own, "bare", manual_score=2.0, needs_manual_grade=False)
    own.nbgrader("autograde", LAB, "--student", "bare", "--force")
    marks = next(m for m in class_marks(Repository(own.root), LAB) if m.student == "bare")

    assert (2.0, ()) == (marks.mark("why_square").points, marks.waiting)


@pytest.mark.slow
def test_a_hand_in_that_cannot_be_read_leaves_the_marks_that_there_are(own: Course):
    """autolab/Autolab#330: a failed autograde overwrote them."""
    own.submit("bare", b"<<<<<<< HEAD")
    report = regrade(LAB, ["area"], course=Repository(own.root), apply=True)
    again = grade(LAB, course=Repository(own.root), only=["bare"])
    marks = next(m for m in class_marks(Repository(own.root), LAB) if m.student == "bare")

    assert ["bare"] == [student for student, _ in report.failed]
    assert "unreadable" == again.row("bare").state
    assert FULL == marks.points


@pytest.mark.slow
def test_a_penalty_goes_when_the_due_date_moves(own: Course):
    """jupyter/nbgrader#723: it stayed."""
    (own.root / "course" / "submitted" / "bare" / LAB / "timestamp.txt").write_text("2026-01-03 12:00:00 UTC")
    policy = '[late]\nper_day = 0.1\n[[assignment]]\nname = "{}"\ndue = 2026-01-{}T12:00:00Z\n'
    found = []
    for day in ("02", "04"):
        (own.root / "course.toml").write_text(policy.format(LAB, day))
        if day == "02":
            grade(LAB, course=Repository(own.root), only=["bare"])
        found.append(next(m for m in class_marks(Repository(own.root), LAB) if m.student == "bare").penalty)

    assert [pytest.approx(0.1 * FULL), 0.0] == found


@pytest.mark.slow
def test_feedback_is_written_anew_after_each_change(own: Course):
    """jupyter/nbgrader#1201: feedback on work that was graded again was not found to be newer."""
    path = own.root / "course" / "feedback" / "bare" / LAB / f"{LAB}.html"
    before = path.read_text()
    by_hand(own, "bare", manual_score=0.25, needs_manual_grade=False)
    feedback(LAB, course=Repository(own.root), only=["bare"])

    assert "0.25" not in before
    assert "0.25" in path.read_text()


@pytest.mark.slow
def test_a_picture_of_the_solution_is_not_released(released: Course, tmp_path: Path):
    """jupyter/nbgrader#1782: the image stayed in the notebook that students got."""
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    source = course.root / "build" / "source" / LAB / f"{LAB}.ipynb"
    notebook = nbformat.read(source, as_version=4)
    answer, title = cell_of(notebook, "why_square"), notebook.cells[0]
    answer["source"] = "### BEGIN SOLUTION\n![solved.png](attachment:solved.png)\n### END SOLUTION"
    title["source"] += "\n![task.png](attachment:task.png)"
    answer["attachments"], title["attachments"] = ({f"{n}.png": {"image/png": PNG}} for n in ("solved", "task"))
    nbformat.write(notebook, source)
    course.nbgrader("generate_assignment", LAB, "--force")
    cells = course.released().cells

    assert ["task.png"] == [name for cell in cells for name in cell.get("attachments", {})]


def student_marks(points: float, most: float) -> StudentMarks:
    return StudentMarks("ann", "Ann", "Lee", "a@x.org", (ExerciseMark("area", points, most),), points, most)


@pytest.mark.parametrize(("points", "written"), [(1028.5, "1028.5"), (123456.75, "123456.75"), (1e7, "10000000")])
def test_large_marks_have_no_separator_and_no_exponent(points: float, written: str):
    """ls1intum/Artemis#1197: "1,028.5" broke the table."""
    row = plain_table([student_marks(points, 2e7)], LAB).decode("utf-8-sig").splitlines()[1]

    assert [written, "20000000", written] == row.split(",")[-3:]


def test_a_worksheet_with_decimal_commas_gets_decimal_commas():
    """academic-moodle-cooperation/moodle-mod_offlinequiz#88: 7.5 became 7."""
    table = parse_table(WORKSHEET.encode(), "worksheet.csv")
    file = moodle.marks_file([student_marks(5.5, 7.0)], numbers={}, table=table, assignment=LAB, column="")

    assert '"5,5"' in file.data.decode()


@pytest.mark.parametrize("name", ["实验一.ipynb", "lab (1).ipynb", "Kopie von lab.IPYNB", "lab90_shapes-1.ipynb"])
def test_a_renamed_notebook_is_the_labs(name: str):
    """earthlab/abc-classroom#88, jupyter/nbgrader#1302, #1219: it was skipped."""
    upload = canvas.upload(Entry(f"lee_101_9001_{name}", b"{}"))
    assert upload is not None

    assert [LAB] == list(choose(ClassMember("ann", lms_id="101", keys=("101",)), [upload], (LAB,)).notebooks)


def test_an_id_is_found_in_capitals_too(tmp_path: Path):
    """jupyter/nbgrader#1534: the list had capitals, the work had none, and a second student appeared."""
    (tmp_path / "roster.csv").write_text("id,name,email\nALee,Ann Lee,A.Lee@x.org\n")
    roster = read_roster(tmp_path / "roster.csv")

    assert ["ALee", "ALee"] == [getattr(roster.find(key), "id", "") for key in ("alee", "a.lee@X.ORG")]


@pytest.mark.parametrize("encoding", ["utf-8", "cp437"])
def test_names_in_a_zip_that_does_not_say_its_encoding_are_read(encoding: str):
    """devilry/devilry-django#361, hit-moodle/moodle#8: names with umlauts came out as question marks."""
    name, data = "Jürgen Köhler_12_assignsubmission_file_/Lösung.ipynb", io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        packed.writestr("x" * len(name.encode(encoding)), "{}")
    unflagged = data.getvalue().replace(b"x" * len(name.encode(encoding)), name.encode(encoding))

    assert [name] == [entry.path for entry in read_zip(unflagged, "all.zip")]


def test_the_number_that_canvas_puts_behind_a_name_is_an_attempt():
    """IIC1253/IIC1253-2025-1#34: a resubmitted file is called 11111111-2."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, name in enumerate(("lab-1", "lab", "lab-2")):
            archive.writestr(f"lee_101_{9000 + number}_{name}.ipynb", name)
    uploads = [upload for entry in read_zip(packed.getvalue(), "x.zip") if (upload := canvas.upload(entry))]
    chosen = choose(ClassMember("ann", "Ann", "Lee", "", "101", ("ann",)), uploads, ("lab",))

    assert b"lab-2" == chosen.notebooks["lab"].data


def test_a_penalty_has_a_most_and_takes_no_more_than_there_is():
    """autolab/Autolab#2151, MarkUsProject/Markus#5565: lateness cost everything, or more than the marks."""
    late = LatePolicy(per_day=0.2, at_most=0.4)

    assert [2.0, 4.0, 4.0] == [late.penalty(10.0, late_s=days * DAY_S) for days in (1, 2, 30)]
    assert 0.0 == late.penalty(0.0, late_s=DAY_S)


def test_each_report_has_a_test_that_plays_it():
    folder = Path(__file__).parent
    reports = tomllib.loads((folder / "public_reports.toml").read_text(encoding="utf-8"))
    named = [test.split("::") for told in reports.values() for test in told.values()]
    texts = {file: (folder.parent / file).read_text(encoding="utf-8") for file, _ in named}

    assert (34, 10) == (len(reports["first"]), len(reports["later"]))
    assert [] == [(file, name) for file, name in named if f"def {name}(" not in texts[file]]
