"""Names of folders and of people are text: they turn, end and run nothing."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest
from nbformat.v4 import new_notebook

from edl_labs.course.grade.student_names import check_folder, plain_name
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_report import ClassOverview
from edl_labs.course.marks.feedback import page_of
from edl_labs.course.marks.nbgrader_plugins import EscapedNames
from edl_labs.course.marks.similarity import Pair
from edl_labs.course.marks.student_marks import StudentMarks
from tests.attacks.page_evasions import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_with_such_a_name_names_no_student(name: str):
    with pytest.raises(Unreadable, match="cannot name a student") as refused:
        check_folder(name)

    assert "student's id" in refused.value.next
    assert str(refused.value).isascii()


@pytest.mark.parametrize(
    "name",
    ["s1234", "José Álvarez", "o'brien@uni.example", "محمد", "張 偉", "a+b_c-d.e", "नेहा", "Tom & Ann", "R&D", "AT&T"],
)
def test_an_honest_name_stays_as_it_is(name: str):
    check_folder(name)

    assert name == plain_name(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ada ", "character 4, U+0020 SPACE, is invisible and at the end of the name"),
        ("\xa0ada", "character 1, U+00A0 NO-BREAK SPACE, is invisible and at the start of the name"),
        ("a<b", "character 2, U+003C LESS-THAN SIGN"),
        ("ada\u202e", "character 4, U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("a\nb", "character 2, U+000A, is invisible and changes"),
        ("R&D &lt;b", "in a page, U+0026 AMPERSAND and the text after it would be read as the code of another"),
        (" ", "character 1, U+0020 SPACE, is invisible and at the start of the name"),
    ],
)
def test_the_character_that_cannot_stay_is_named(name: str, told: str):
    with pytest.raises(Unreadable) as refused:
        check_folder(name)

    assert told in refused.value.why
    assert not {"quotes", "brackets"} & set(refused.value.why.split())


def test_what_acts_on_the_text_around_it_is_not_shown():
    assert "a�b�c�d" == plain_name("a\nb\u202ec\x1bd")


@pytest.mark.parametrize("name", NAMES)
def test_formgrader_gets_names_as_text(name: str):
    given = {"student": name, "first_name": name, "last_name": None, "notebook_path": f"a/{name}/b", "index": 3}
    _, found = EscapedNames().preprocess({}, dict(given))
    told = [found[key] for key in ("student", "first_name", "notebook_path")]

    assert not any(set('<>"\n\u202e\u2028') & set(text) for text in told)
    assert (None, 3) == (found["last_name"], found["index"])


@pytest.mark.parametrize("name", ["Tom & Ann", *(name for name in NAMES if set('<>"&') & set(name))])
def test_our_pages_hold_names_as_text(name: str, tmp_path: Path):
    marks = StudentMarks(name, name, "", "", (), 1.0, 2.0)
    pairs = (Pair(name, name, 1.0, 9, ()),)
    report = ClassOverview("lab", 2, (1.0, 2.0), 2.0, (), (), ((name, ("killed",)),), pairs, (name,))
    write_report(report, {name: {}}, tmp_path / "report.html")
    page = page_of(marks, new_notebook(), assignment="lab", order=[])

    for text in ((tmp_path / "report.html").read_text(), page):
        assert name not in text
        assert escape(name, quote=False).replace('"', "&#34;") in text
