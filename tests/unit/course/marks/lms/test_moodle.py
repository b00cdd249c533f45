"""Moodle: the names in its zip, and its grading worksheet."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms import moodle
from edl_labs.course.marks.lms.learning_system import MarksFile
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import parse_table
from edl_labs.errors import UsageError

WORKSHEET = (
    "Identifier;Full name;Email address;Grade;Maximum Grade\n"
    "Participant 555;José Álvarez;jose@x.org;;100,00\n"
    "Participant 556;Ann O'Neil;ann@x.org;;100,00\n"
    "Participant 557;Bo;bo@x.org;7;100,00\n"
)
MARKS = (
    StudentMarks("ja", "", "", "", (), 17.5, 20.0),
    StudentMarks("ao", "", "", "ann@x.org", (), 5.0, 20.0),
)


@pytest.mark.parametrize(
    ("path", "user", "file"),
    [
        ("José Álvarez_555_assignsubmission_file_/lab01.ipynb", "555", "lab01.ipynb"),
        ("José Álvarez_555_assignsubmission_file_lab01.ipynb", "555", "lab01.ipynb"),
        ("José Álvarez_555_assignsubmission_file/sub/lab01.ipynb", "555", "lab01.ipynb"),
        ("Group A-Ann O_Neil_556_assignsubmission_file_/lab01.ipynb", "556", "lab01.ipynb"),
        ("Participant_557_assignsubmission_file_/lab01.ipynb", "557", "lab01.ipynb"),
        ("Ann_556_assignsubmission_onlinetext_/onlinetext.html", "556", "onlinetext.html"),
        ("Default group_assignsubmission_file_/lab01.ipynb", "", "lab01.ipynb"),
    ],
)
def test_a_name_says_whose_a_file_is_and_takes_feedback_back(path: str, user: str, file: str) -> None:
    found = moodle.upload(Entry(path, b""))

    assert found is not None
    assert (user, file) == (found.user, found.file)
    assert found.prefix.endswith(f"_{user}_assignsubmission_file_")


def test_a_name_that_says_nothing_is_nobodys() -> None:
    assert None is moodle.upload(Entry("notes.txt", b""))


def test_the_worksheet_comes_back_with_grades_scaled_to_its_maximum() -> None:
    table = parse_table(WORKSHEET.encode(), "worksheet.csv")
    made = moodle.marks_file(MARKS, numbers={"ja": "555"}, table=table, assignment="lab01", column="")

    assert WORKSHEET.replace("jose@x.org;;", "jose@x.org;87,5;").replace("ann@x.org;;", "ann@x.org;25;") == (
        made.data.decode()
    )
    assert ({"ja": 17.5, "ao": 5.0}, ("Bo",)) == (made.filled, made.without)


@pytest.mark.parametrize(("maximum", "grade"), [("50.00", "43.75"), ('"50,00"', '"43,75"'), ("", "17.5")])
def test_numbers_have_the_sign_of_the_worksheets_own(maximum: str, grade: str) -> None:
    text = "Identifier,Full name,Grade,Maximum grade\r\nParticipant 555,Ana,{},{}\r\n"
    made = marks_in(text.format("", maximum))

    assert text.format(grade, maximum) == made.data.decode()


@pytest.mark.parametrize("maximum", ["-2.00", "0.00", "-", '"Poor,Good"'])
def test_points_are_not_written_where_moodle_has_none(maximum: str) -> None:
    """A scale's number is below 0 there; points in its place would be read as something else, or as nothing."""
    with pytest.raises(UsageError, match="no points in Moodle"):
        marks_in(f"Identifier,Full name,Grade,Maximum grade\r\nParticipant 555,Ana,,{maximum}\r\n")


def test_comments_that_moodle_reads_back_stay_as_they_are_and_names_never_compute() -> None:
    text = "Identifier,Full name,Grade,Feedback comments\r\nParticipant 555,{},17.5,{}\r\n"
    made = marks_in(text.format("=1+1", "- good so far"))

    assert text.format("'=1+1", "- good so far") == made.data.decode()


def marks_in(text: str) -> MarksFile:
    """The worksheet with what the first student got."""
    table = parse_table(text.encode(), "worksheet.csv")
    return moodle.marks_file(MARKS[:1], numbers={"ja": "555"}, table=table, assignment="lab01", column="")
