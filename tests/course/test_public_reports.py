"""What users of nbgrader, otter-grader, Canvas, Moodle and Artemis reported in public, tried here."""

from __future__ import annotations

import base64
import io
import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import ClassReport, grade
from edl_labs.course.marks.archives import read_zip
from edl_labs.course.marks.chosen_files import choose
from edl_labs.course.marks.feedback import feedback
from edl_labs.course.marks.lms import canvas, moodle
from edl_labs.course.marks.lms.folder import plain_table
from edl_labs.course.marks.lms.learning_system import ClassMember
from edl_labs.course.marks.student_marks import ExerciseMark, StudentMarks
from edl_labs.course.marks.tables import parse_table
from edl_labs.course.policy import DAY_S, LatePolicy
from tests.course.course_fixture import LAB, POINTS, SOLUTIONS, Course, cell_of, solve_cell
from tests.course.once import once

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
    return {
        "asks": course.answered({"area": solve_cell("area", body=SOLUTIONS["area"][1]) + '\nside = input("side? ")'}),
        "asks_first": course.answered({"longest": 'side = input("side? ")\n' + solve_cell("longest", body="return 0")}),
        "retyped": retyped,
        "turned": turned,
        "drawn": drawn,
    }


def make_graded(root: Path, source: Path) -> None:
    """Notebooks put into their folders by hand, without a time, then graded."""
    shutil.copytree(source, root)
    for student, notebook in hand_ins(Course(root)).items():
        Course(root).submit(student, notebook)
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
    assert {"graded"} == {row.state for row in graded.report.rows}


@pytest.mark.slow
def test_work_that_was_put_into_its_folder_by_hand_is_graded(graded: GradedClass):
    """jupyter/nbgrader#1409: submissions from a learning system, without a timestamp, were skipped."""
    assert set(hand_ins(graded.course)) == {row.student for row in graded.report.rows}


@pytest.mark.slow
def test_a_picture_attached_to_an_answer_is_seen_by_graders_and_in_feedback(graded: GradedClass):
    """jupyter/nbgrader#950: formgrader did not load it."""
    root = graded.course.root
    page = next((root / "course" / "feedback" / "drawn").rglob("*.html")).read_text()
    shown = nbformat.read(root / "course" / "autograded" / "drawn" / LAB / f"{LAB}.ipynb", as_version=4)

    assert PNG in page
    assert PNG == cell_of(shown, "why_square").attachments["sketch.png"]["image/png"]


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
