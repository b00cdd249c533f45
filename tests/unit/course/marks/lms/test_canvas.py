"""Canvas: the names in its zip, and its gradebook."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms import canvas
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import parse_table
from edl_labs.errors import UsageError

GRADEBOOK = (
    "Student,ID,SIS Login ID,Section,Lab 1 (77),Other (78)\r\n"
    "    Points Possible,,,,20,5\r\n"
    '"Álvarez, José",101,ja,A,,4\r\n'
    "Cher,102,,A,3,\r\n"
)
MARKS = (StudentMarks("ja", "José", "Álvarez", "", (), 17.5, 20.0), StudentMarks("x9", "", "", "", (), 1.0, 20.0))


@pytest.mark.parametrize(
    ("path", "user", "file", "late"),
    [
        ("alvarezjose_101_9001_lab01.ipynb", "101", "lab01.ipynb", False),
        ("alvarezjose_LATE_101_9001_lab01-2.ipynb", "101", "lab01-2.ipynb", True),
        ("deep/oneilann_102_9002_my_lab_3_4.ipynb", "102", "my_lab_3_4.ipynb", False),
        ("李小龙_103_9003_lab.zip", "103", "lab.zip", False),
    ],
)
def test_a_name_says_whose_a_file_is_and_takes_feedback_back(path: str, user: str, file: str, late: bool) -> None:
    found = canvas.upload(Entry(path, b""))

    assert found is not None
    assert (user, file, late) == (found.user, found.file, found.late)
    assert path.split("/")[-1] == found.prefix + found.file


def test_a_name_that_says_nothing_is_nobodys() -> None:
    assert None is canvas.upload(Entry("notes.txt", b""))


@pytest.mark.parametrize("name", ["anon_ky9Qm_9001_lab01.ipynb", "LATE_anon_a1B2c_9001_12_lab01.ipynb"])
def test_an_anonymous_download_is_refused_and_said_plainly(name: str) -> None:
    with pytest.raises(UsageError, match="graded anonymously"):
        canvas.upload(Entry(name, b""))


def test_somebody_called_anon_is_somebody() -> None:
    found = canvas.upload(Entry("anon_12345_9001_lab01.ipynb", b""))

    assert found is not None
    assert "12345" == found.user


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        (f'"Student, Test",900,,{"0a" * 20},A', False),
        ('"Student, Test",900,,,A', False),
        ('"Student, Test",900,u9,tstudent,A', True),
        ('"Student, Test",900,,tstudent,A', True),
    ],
)
def test_canvas_s_test_student_is_told_from_a_student_of_that_name(row: str, counts: bool) -> None:
    table = parse_table(f"Student,ID,SIS User ID,SIS Login ID,Section\n{row}\n".encode(), "grades.csv")

    assert counts == (canvas.student(table, table.rows[0]) is not None)


def test_the_gradebook_comes_back_with_one_column_filled_in() -> None:
    table = parse_table(GRADEBOOK.encode("utf-8-sig"), "grades.csv")
    made = canvas.marks_file(MARKS, numbers={}, table=table, assignment="lab 1", column="")

    assert GRADEBOOK.replace("ja,A,,4", "ja,A,17.5,4") == made.data.decode("utf-8-sig")
    assert ({"ja": 17.5}, ("Cher",)) == (made.filled, made.without)
