"""No learning system: folders, files, and a table of marks of its own."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms import folder
from edl_labs.course.marks.student_marks import ExerciseMark, StudentMarks


@pytest.mark.parametrize(
    ("path", "user", "file"),
    [("ana/x.ipynb", "ana", "x.ipynb"), ("ana/deep/x.ipynb", "ana", "x.ipynb"), ("a@x.org.ipynb", "a@x.org", None)],
)
def test_a_folder_or_a_file_names_its_student(path: str, user: str, file: str | None) -> None:
    found = folder.upload(Entry(path, b""))

    assert found is not None
    assert (user, file or path) == (found.user, found.file)


def test_marks_are_a_table_with_a_column_for_each_exercise() -> None:
    marks = (
        StudentMarks(
            "ana",
            "=A1",
            "O'Neil, Jr",
            "",
            (ExerciseMark("b", 1.0, 2.0), ExerciseMark("a", 0.0, 1.0, waiting=True)),
            1.0,
            3.0,
        ),
    )
    made = folder.marks_file(marks, numbers={}, table=None, assignment="lab01", column="")

    assert [
        "student,first_name,last_name,email,assignment,submitted,late_s,penalty,points,of,a,b",
        "ana,'=A1,\"O'Neil, Jr\",,lab01,,0,0,1,3,,1",
    ] == made.data.decode("utf-8-sig").splitlines()
    assert {"ana": 1.0} == made.filled
