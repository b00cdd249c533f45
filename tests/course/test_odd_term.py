"""Twelve odd students and a group: nobody loses a mark by it unheard, and each reads on a page what it was."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import ClassReport, grade
from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.collect import CollectReport, collect
from edl_labs.course.marks.export import ExportReport, export
from edl_labs.course.marks.feedback import FeedbackReport, feedback
from edl_labs.course.marks.student_marks import class_marks, open_book
from tests.course.course_fixture import LAB, Course, cell_of, solve_cell

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ESSAY = "Größe und Fläche: so ist es."
WRONG_ID = '[assignment.extensions]\n"nobody" = 2026-11-09\n'
POLICY = f"""
[course]
roster = "roster.csv"
groups = "groups.csv"
[late]
grace_minutes = 10
per_day = 0.1
[[assignment]]
name = "{LAB}"
due = 2026-11-01T12:00:00
{WRONG_ID}
"""
UNREAD = {
    "other_lab": "this is the notebook of lab02_other",
    "empty_file": "the notebook is empty",
    "no_cells": "the notebook has no cells",
    "cut_off": "the notebook is not JSON",
}


def hand_ins(course: Course) -> dict[str, bytes]:
    """What each student sends."""
    honest = json.dumps(course.answered(prose=ESSAY), ensure_ascii=False)
    windows = course.answered(prose=ESSAY)
    for cell in windows.cells:
        cell["source"] = cell["source"].replace("\n", "\r\n") + "\r\n"
    other = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Another lab")])
    other.metadata["edl_labs"] = {"lab": "lab02_other"}
    return {
        "honest": honest.encode(),
        "utf16": honest.encode("utf-16"),
        "cp1252": honest.encode("cp1252"),
        "crlf": json.dumps(windows).encode(),
        "syntax": json.dumps(course.answered({"halves": "def halves(values:\n    return values"})).encode(),
        "raises": json.dumps(
            course.answered({"halves": "half = sides / 2\ndef halves(values): return values"})
        ).encode(),
        "moved": json.dumps(dragged(course)).encode(),
        "other_lab": json.dumps(other).encode(),
        "empty_file": b"",
        "no_cells": b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
        "cut_off": honest.encode()[:400],
        "in_grace": json.dumps(course.answered(prose="Five minutes late.")).encode(),
        "red1": json.dumps(course.answered({"area": solve_cell("area", body="return 0")}, prose="We think.")).encode(),
    }


def dragged(course: Course) -> nbformat.NotebookNode:
    """A notebook whose cell of `area` went to its end, far below the checks of all that builds on it."""
    notebook = course.answered()
    area = cell_of(notebook, "area")
    notebook.cells.remove(area)
    notebook.cells.append(area)
    return notebook


@dataclass(frozen=True)
class Term:
    """A course that went from hand-in to pages."""

    course: Course
    folder: Repository
    taken: CollectReport
    graded: ClassReport
    back: FeedbackReport
    out: ExportReport

    def page(self, student: str) -> str:
        """A student's page."""
        return (self.course.root / self.back.pages[student]).read_text()


@pytest.fixture(scope="module")
def term(released: Course, tmp_path_factory: pytest.TempPathFactory) -> Term:
    root = tmp_path_factory.mktemp("odd") / "course"
    shutil.copytree(released.root, root)
    course, folder = Course(root), Repository(root)
    sent = hand_ins(course)
    (root / "course.toml").write_text(POLICY)
    (root / "roster.csv").write_text(
        "id,first_name,last_name\n" + "".join(f"{name},Student,{name.title()}\n" for name in (*sent, "red2", "absent"))
    )
    (root / "groups.csv").write_text("group,id\nred,red1\nred,red2\n")
    (root / "times.csv").write_text("student_id,submitted_at\nin_grace,2026-11-01T12:05:00Z\nstranger,2026-11-01\n")
    for name, data in sent.items():
        (root / "in" / name).mkdir(parents=True)
        (root / "in" / name / f"{LAB}.ipynb").write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
        patch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy", "edl_labs.checks.evidence"))
        taken = collect(LAB, root / "in", kind="dir", course=folder, times=root / "times.csv")
        graded = grade(LAB, course=folder, jobs=2)
        with open_book(folder) as book:
            mark = book.find_grade("why_square", LAB, LAB, "red1")
            mark.manual_score, mark.needs_manual_grade = 1.5, False
            book.find_comment("why_square", LAB, LAB, "red1").manual_comment = "Well argued."
            book.db.commit()
        back = feedback(LAB, course=folder)
        out = export(LAB, kind="csv", out=root / "marks.csv", course=folder)
        return Term(course, folder, taken, graded, back, out)


def test_collect_says_at_once_what_cannot_be_graded_and_who_is_unknown(term: Term):
    problems = {row.student: row.problem for row in term.taken.rows if row.problem}
    said = " ".join(term.taken.remarks)

    assert UNREAD.keys() == problems.keys()
    assert all(problems[name].startswith(what) for name, what in UNREAD.items()), problems
    assert 1 == term.taken.exit_code
    assert ("absent",) == term.taken.missing
    assert "stranger" in said
    assert "has an extension for nobody, but no student has this id" in said


def test_what_can_be_read_has_all_its_marks_and_nobody_is_called_tampered(term: Term):
    rows = {row.student: row for row in term.graded.rows}

    assert [7.0] * 4 == [rows[name].points for name in ("honest", "utf16", "cp1252", "crlf")]
    assert not [row.student for row in term.graded.rows if "tampered" in row.flags]
    assert "late" not in rows["in_grace"].flags
    waiting = {m.student for m in class_marks(term.folder, LAB) if m.waiting}
    assert {"honest", "utf16", "cp1252", "crlf", "in_grace"} == waiting


def test_a_syntax_error_is_named_with_its_line(term: Term):
    assert "Python cannot parse the cell of halves" in term.page("syntax")
    assert "line 1:" in term.page("syntax")


def test_a_cell_that_raised_says_which_exception_and_why(term: Term):
    assert "the cell of halves raised an exception before it had defined everything" in term.page("raises")
    assert "it raised NameError" in term.page("raises")


def test_a_cell_dragged_below_its_check_loses_nothing_and_a_person_is_told(term: Term):
    row = next(row for row in term.graded.rows if row.student == "moved")

    assert (7.0, True) == (row.points, "mended" in row.flags)
    assert "the check of area was above the cell of area, and was run below it" in row.remarks


def test_a_page_without_marks_is_headed_by_the_students_name(term: Term):
    assert "<bdi>Student Other_Lab</bdi>" in term.page("other_lab")
    assert "<title>lab90_shapes: Student Other_Lab</title>" in term.page("other_lab")


def test_everyone_who_sent_something_has_a_page_that_says_what_it_was(term: Term):
    assert {row.student for row in term.taken.rows} == term.back.pages.keys()
    assert all(what in term.page(name) for name, what in UNREAD.items())
    assert "within the grace period" in term.page("in_grace")
    assert ESSAY in term.page("cp1252")


def test_the_report_lists_them(term: Term):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDL_LABS_EXERCISES", str(term.course.exercises))
        report, solutions = class_report(LAB, course=term.folder)
        write_report(report, solutions, term.course.root / "report.html")
    page = (term.course.root / "report.html").read_text()

    assert tuple(sorted(UNREAD)) == report.unread
    assert "could not be graded: the notebook has no cells" in page
    assert not [pair for pair in report.pairs if {"red1", "red2"} == {pair.first, pair.second}]
    assert "the check of area was above the cell of area, and was run below it" in page
    assert "have points that depend on their own process (trusting)" in page
    assert "100% of 2 points on average of the 2 that are marked" not in page
    prose = next(e for e in report.exercises if e.name == "why_square")
    assert ((0.75, 0.75), True) == (prose.shares, prose.waiting > 0 and prose.left_empty > 0)


def test_a_groups_notebook_gives_each_member_the_same_marks_and_comment(term: Term):
    marks = {m.student: m for m in class_marks(term.folder, LAB)}
    red = [marks[name] for name in ("red1", "red2")]

    assert red[0].points == red[1].points == 5.0 + 1.5
    assert ["Well argued."] * 2 == [m.mark("why_square").comment for m in red]
    assert "Well argued." in term.page("red2")
    assert "red1" in term.taken.rows[[r.student for r in term.taken.rows].index("red2")].remarks[0]
    cells = json.loads(
        term.folder.path("submitted", student="red2", assignment=LAB).joinpath(f"{LAB}.ipynb").read_text()
    )
    assert "We think." == cell_of(nbformat.from_dict(cells), "why_square")["source"]
