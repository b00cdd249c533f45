"""An answer in prose that was handed in beside the graded notebook: a person marks it, in whatever file it came."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from edl_labs.course.grade.plan import MarkingPlan, make_plan
from edl_labs.course.grade.preprocessors import set_files_aside
from edl_labs.course.grade.submitted_folder import read_submission
from edl_labs.course.marks.collect import CollectReport, collect
from edl_labs.course.marks.student_marks import class_marks
from tests.course.course_fixture import LAB, SOLUTIONS, Course, cell_of, solve_cell

ESSAY = "Of two numbers with a fixed sum the product is largest when they are equal, and that rectangle is a square."
ROSTER = "id,first_name,last_name,canvas_id,moodle_id\nann,Ann,Lee,101,101\nben,Ben,Low,102,102\n"
PDF = b"%PDF-1.7 " + bytes(range(128, 256)) * 4
NAME = f"{LAB}.ipynb"
Files = dict[str, bytes]


@pytest.fixture
def course(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course of its own with two students."""
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    (course.root / "roster.csv").write_text(ROSTER, encoding="utf-8")
    return course


def as_bytes(notebook: nbformat.NotebookNode) -> bytes:
    return json.dumps(notebook).encode()


def code_alone(course: Course) -> bytes:
    """All code solved, the answer in prose as it was released."""
    return as_bytes(course.answered())


def with_essay(course: Course, *, ids: bool = True, below: bool = False) -> bytes:
    """A copy of the lab without code, with the essay in its answer or in a cell below it."""
    notebook = course.released()
    if below:
        notebook.cells.append(nbformat.v4.new_markdown_cell(ESSAY))
    else:
        cell_of(notebook, "why_square")["source"] = ESSAY
    if not ids:
        for cell in notebook.cells:
            cell.metadata = {}
            del cell["id"]
        notebook.nbformat_minor = 4
    return as_bytes(notebook)


def essay_alone() -> bytes:
    """A notebook of the student's own with the essay in it."""
    return as_bytes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(ESSAY)]))


def zipped(files: Files) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def canvas(files: Files, user: int = 101) -> Files:
    return {f"leeann_{user}_{9000 + n}_{name}": data for n, (name, data) in enumerate(files.items())}


def moodle(files: Files, kind: str = "file") -> Files:
    return {f"Ann Lee_101_assignsubmission_{kind}_/{name}": data for name, data in files.items()}


def handed_in(course: Course, files: Files, kind: str) -> CollectReport:
    (course.root / "in.zip").write_bytes(zipped(files))
    return collect(
        LAB, course.root / "in.zip", kind=kind, course=Repository(course.root), roster=course.root / "roster.csv"
    )


def plan_of(course: Course, student: str = "ann") -> MarkingPlan:
    known = Repository(course.root)
    folder = known.path("submitted", student=student, assignment=LAB)
    return make_plan(known.assignment(LAB), read_submission(folder, LAB))


Make = Callable[[Course], Files]
# In each of them the code is in the lab's notebook, and the essay in another copy of the lab.
COPIES: dict[str, tuple[str, Make]] = {
    "two uploads at Canvas": ("canvas", lambda c: canvas({NAME: code_alone(c), "essay.ipynb": with_essay(c)})),
    "a second upload of the same name": (
        "canvas",
        lambda c: canvas({f"{LAB}-1.ipynb": code_alone(c), NAME: with_essay(c)}),
    ),
    "two in a zip": (
        "canvas",
        lambda c: canvas({"all.zip": zipped({f"a/{NAME}": code_alone(c), f"a/text/{NAME}": with_essay(c)})}),
    ),
    "a zip beside the notebook": (
        "canvas",
        lambda c: canvas({NAME: code_alone(c), "more.zip": zipped({"x.ipynb": with_essay(c)})}),
    ),
    "two in a Moodle folder": ("moodle", lambda c: moodle({NAME: code_alone(c), "essay.ipynb": with_essay(c)})),
    "two in a plain folder": ("dir", lambda c: {f"ann/{NAME}": code_alone(c), "ann/essay.ipynb": with_essay(c)}),
    "in a copy without ids": ("canvas", lambda c: canvas({NAME: code_alone(c), "e.ipynb": with_essay(c, ids=False)})),
    "outside the copy's answer": (
        "canvas",
        lambda c: canvas({NAME: code_alone(c), "e.ipynb": with_essay(c, below=True)}),
    ),
    "beside an untouched notebook of the lab's name": (
        "dir",
        lambda c: {
            f"ann/{NAME}": as_bytes(c.released()),
            "ann/code.ipynb": code_alone(c),
            "ann/e.ipynb": with_essay(c),
        },
    ),
}
# And here it is in a file that a person has to open.
FILES: dict[str, tuple[str, Make, bool]] = {
    "Markdown": ("canvas", lambda c: canvas({NAME: code_alone(c), "essay.md": ESSAY.encode()}), True),
    "text": ("moodle", lambda c: moodle({NAME: code_alone(c), "essay.txt": ESSAY.encode()}), True),
    "a notebook of their own": ("canvas", lambda c: canvas({NAME: code_alone(c), "my.ipynb": essay_alone()}), True),
    "Word": ("canvas", lambda c: canvas({NAME: code_alone(c), "essay.docx": zipped({"w.xml": b"<w/>"})}), False),
    "PDF": ("moodle", lambda c: moodle({NAME: code_alone(c), "essay.pdf": PDF}), False),
    "a photograph": ("dir", lambda c: {f"ann/{NAME}": code_alone(c), "ann/essay.jpg": b"\xff\xd8\xff" * 9}, False),
    "a PDF in a zip": ("canvas", lambda c: canvas({"a.zip": zipped({NAME: code_alone(c), "e.pdf": PDF})}), False),
    "an archive that nobody can read": ("canvas", lambda c: canvas({NAME: code_alone(c), "e.rar": PDF}), False),
    "a damaged zip": ("canvas", lambda c: canvas({NAME: code_alone(c), "e.zip": PDF}), False),
    "an odd name": ("dir", lambda c: {f"ann/{NAME}": code_alone(c), f"ann/{'é' * 90}:*?.txt": PDF}, False),
    "Moodle's text field": (
        "moodle",
        lambda c: {**moodle({NAME: code_alone(c)}), **moodle({"onlinetext.html": page(ESSAY)}, "onlinetext")},
        True,
    ),
    "Canvas's text entry": ("canvas", lambda c: canvas({NAME: code_alone(c), "text.html": page(ESSAY)}), True),
}  # fmt: skip


def page(text: str) -> bytes:
    return f"<!DOCTYPE html><html><head><title>x</title></head><body><p>{text}</p></body></html>".encode()


def make_group(course: Course) -> None:
    (course.root / "groups.csv").write_text("group,id\nred,ann\nred,ben\n")
    (course.root / "course.toml").write_text('[course]\ngroups = "groups.csv"\n')


@pytest.mark.parametrize("where", COPIES)
def test_an_essay_in_another_copy_of_the_lab_is_copied_into_the_answer(course: Course, where: str) -> None:
    kind, make = COPIES[where]
    handed_in(course, make(course), kind)
    plan = plan_of(course)

    assert ESSAY in plan.answers()["why_square"]
    assert () == plan.untouched()
    assert ["a person must mark it"] == [note.text.split(": ")[1] for note in plan.notes if "copied from" in note.text]


@pytest.mark.parametrize("what", FILES)
def test_an_empty_answer_stays_open_where_another_file_was_handed_in(course: Course, what: str) -> None:
    kind, make, is_shown = FILES[what]
    handed_in(course, make(course), kind)
    plan = plan_of(course)
    answer = plan.answers()["why_square"]

    assert () == plan.untouched()
    assert "This answer was left empty" in answer
    assert is_shown == (ESSAY in answer)
    assert ["a person must mark it"] == [note.text.split(": ")[1] for note in plan.notes if "may be in" in note.text]


@pytest.mark.parametrize("other", ["essay.ipynb", "essay.pdf"])
@pytest.mark.parametrize("aside", [False, True])
def test_what_the_exchange_brought_counts_too_also_after_nbgrader_put_it_aside(
    course: Course, other: str, aside: bool
) -> None:
    path = course.submit("ann", course.answered())
    (path.parent / other).write_bytes(with_essay(course) if other.endswith("ipynb") else PDF)
    given = [str(entry) for entry in path.parent.glob("*.ipynb")]
    if aside:
        set_files_aside(notebooks=given, assignment=LAB, student="ann")

        assert [str(path)] == given
    plan = plan_of(course)

    assert () == plan.untouched()
    assert other in plan.answers()["why_square"]


def test_what_one_of_a_group_wrote_is_marked_for_the_notebook_of_another(course: Course) -> None:
    make_group(course)
    files = canvas({NAME: with_essay(course)}) | {f"lowben_102_9009_{NAME}": code_alone(course)}
    handed_in(course, files, "canvas")

    for student in ("ann", "ben"):
        assert ESSAY in plan_of(course, student).answers()["why_square"]


def test_one_of_a_group_hands_in_the_notebook_and_another_the_essay(course: Course) -> None:
    make_group(course)
    handed_in(course, canvas({NAME: code_alone(course)}) | {"lowben_102_9009_essay.txt": ESSAY.encode()}, "canvas")

    assert ESSAY in plan_of(course).answers()["why_square"]


@pytest.mark.parametrize("first", [NAME, "essay.txt"])
def test_what_an_earlier_download_had_is_not_lost(course: Course, first: str) -> None:
    handed_in(course, canvas({first: with_essay(course) if first == NAME else ESSAY.encode()}), "canvas")
    handed_in(course, {f"leeann_101_9100_{NAME}": code_alone(course)}, "canvas")

    assert ESSAY in plan_of(course).answers()["why_square"]


def test_an_answer_in_its_cell_is_taken_as_it_is(course: Course) -> None:
    essay = as_bytes(course.answered(prose=ESSAY))
    handed_in(course, canvas({NAME: essay, "draft.txt": b"A draft.", "old.ipynb": with_essay(course)}), "canvas")

    assert ESSAY == plan_of(course).answers()["why_square"]


@pytest.mark.parametrize(
    "other", ["nothing", "own module", "released file", "other lab", "untouched copy", "empty file"]
)
def test_an_answer_that_nobody_gave_stays_empty(course: Course, other: str) -> None:
    (course.root / "labs" / LAB / "sizes.csv").write_text("1,2\n")
    lab02 = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(ESSAY)])
    lab02.metadata["edl_labs"] = {"lab": "lab02_other"}
    beside = {
        "own module": {"helpers.py": b'"""The functions that I use in all of my notebooks."""'},
        "released file": {"sizes.csv": b"1,2\n"},
        "other lab": {"lab02_other.ipynb": as_bytes(lab02)},
        "untouched copy": {"copy.ipynb": as_bytes(course.released())},
        "empty file": {"notes.txt": b""},
    }.get(other, {})
    handed_in(course, {f"ann/{name}": data for name, data in {NAME: code_alone(course), **beside}.items()}, "dir")

    assert ("why_square",) == plan_of(course).untouched()


def test_the_copy_with_work_in_it_is_graded_and_not_the_released_one(course: Course) -> None:
    files = {NAME: as_bytes(course.released()), "mine.ipynb": as_bytes(course.answered(prose=ESSAY))}
    report = handed_in(course, canvas(files), "canvas")

    assert () == plan_of(course).untouched()
    assert ("of 2 notebooks, mine.ipynb is used",) == report.rows[0].remarks[:1]


def test_code_in_another_copy_is_named(course: Course) -> None:
    stub = course.released()
    first, second = (course.answered({one: cell_of(stub, one)["source"]}) for one in ("area", "halves"))
    handed_in(course, canvas({NAME: as_bytes(first), "second.ipynb": as_bytes(second)}), "canvas")

    notes = {note.text: note.mends for note in plan_of(course).notes}
    assert {
        "files that were not used: second.ipynb": False,
        "the cell of area is empty here; the answer in second.ipynb is not used": False,
    } == {text: mends for text, mends in notes.items() if "second" in text and "answer to" not in text}


@pytest.mark.slow
def test_the_grade_is_open_in_the_gradebook_and_the_text_is_where_a_person_marks(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy", "edl_labs.checks.evidence"))
    handed_in(course, canvas({NAME: code_alone(course), "essay.ipynb": with_essay(course), "e.pdf": PDF}), "canvas")
    folder = Repository(course.root)
    report = grade(LAB, course=folder, jobs=1)
    shown = nbformat.read(course.root / "course" / "autograded" / "ann" / LAB / NAME, as_version=4)
    (marks,) = class_marks(folder, LAB)

    assert marks.waiting
    assert ESSAY in cell_of(shown, "why_square")["source"]
    assert "e.pdf (521 bytes)" in cell_of(shown, "why_square")["source"]
    assert any("copied from essay.ipynb" in remark for remark in report.row("ann").remarks)
    assert float(sum(points for _, points in report.row("ann").marks)) > 0


@pytest.mark.slow
def test_nbgraders_own_autograde_takes_the_labs_notebook_and_leaves_the_grade_open(course: Course) -> None:
    wrong = course.answered({"area": solve_cell("area", body="return 0")})
    path = course.submit("ann", wrong)
    (path.parent / "essay.ipynb").write_bytes(with_essay(course))
    course.nbgrader("autograde", LAB, "--student", "ann")
    (marks,) = class_marks(Repository(course.root), LAB)

    assert marks.waiting
    assert SOLUTIONS.keys() <= course.scores("ann").keys() | {n.removeprefix("check_") for n in course.scores("ann")}
    assert None is course.scores("ann")["why_square"]
