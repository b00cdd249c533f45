"""Who is in the class, whichever file says so."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.marks.lms.learning_system import ClassMember
from edl_labs.course.marks.roster import (
    Roster,
    anonymous,
    course_remarks,
    read_roster,
    read_times,
    unknown_keys,
)
from edl_labs.course.policy import CoursePolicy
from edl_labs.errors import UsageError

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Lab 1 (77)
    Points Possible,,,,,20
"Álvarez, José",101,u1,jalvarez,A,
"O'Neil, Ann",102,u2,aoneil,A,
"Student, Test",,,abc,A,
"""
MOODLE = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (submission)
Participant 555,José Álvarez,jose@x.org,Submitted,,20,"Friday, 20 November 2026, 11:59 PM"
Participant 556,Ann O'Neil,ann@x.org,No submission,,20,-
"""
PLAIN = "id,first_name,last_name,email,canvas_id\nja1,José,Álvarez,jose@x.org,101\nao2,Ann,O'Neil,ann@x.org,102\n"


def roster(folder: Path, text: str) -> Roster:
    (folder / "class.csv").write_text(text, encoding="utf-8")
    return read_roster(folder / "class.csv")


@pytest.mark.parametrize(
    ("text", "key", "student"),
    [
        (CANVAS, "101", "jalvarez"),
        (CANVAS, "U2", "aoneil"),
        (MOODLE, "555", "jose@x.org"),
        (MOODLE, "ANN@x.org", "ann@x.org"),
        (PLAIN, "101", "ja1"),
        (PLAIN, "ao2", "ao2"),
    ],
)
def test_a_student_is_found_by_any_number_login_or_address(tmp_path: Path, text: str, key: str, student: str) -> None:
    found = roster(tmp_path, text).find(key)

    assert found is not None
    assert student == found.id


def test_lines_that_are_nobody_are_left_out(tmp_path: Path) -> None:
    assert 2 == len(roster(tmp_path, CANVAS))


def test_a_full_name_finds_a_student_unless_two_have_it(tmp_path: Path) -> None:
    one = roster(tmp_path, PLAIN)
    two = roster(tmp_path, PLAIN + "ja9,Jose,Alvarez,other@x.org,109\n")
    found = one.find("999", name="alvarezjose")

    assert found is not None
    assert "ja1" == found.id
    assert None is two.find("999", name="José Álvarez")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,mark\nAna,1\n", "no column"),
        ("id\n", "does not list any student"),
        ("id\n../x\n", "cannot be a student's id"),
        ("id\na b/c\n", "cannot be a student's id"),
        ("id,name\nana,Ana\nANA,Other\n", "twice"),
    ],
)
def test_rosters_that_cannot_be_used_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        roster(tmp_path, text)


def test_without_a_roster_the_number_is_the_student_if_it_can_name_a_folder() -> None:
    found = anonymous("101")

    assert found is not None
    assert "101" == found.id
    assert None is anonymous("a/b")


@pytest.mark.parametrize(
    ("text", "number", "student"),
    [
        ("Identifier,Full name,Email address\nParticipant 7,Ann,ann.o'neil@x.org\n", "7", "7"),
        ("Identifier,Full name,Email address,Username\nParticipant 7,Ann,ann+1@x.org,aoneil\n", "7", "aoneil"),
        ("Student,ID,SIS Login ID\n\"O'Neil, Ann\",102,ann.o'neil@x.org\n", "102", "102"),
    ],
)
def test_an_address_that_cannot_name_folders_is_no_reason_to_refuse_a_class(
    tmp_path: Path, text: str, number: str, student: str
) -> None:
    found = roster(tmp_path, text).find(number)

    assert found is not None
    assert student == found.id


def test_an_id_that_cannot_name_folders_is_refused_with_one_that_can(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        roster(tmp_path, "id,name\no'neil,Ann\n")

    assert "write a different id for this student, such as oneil" == caught.value.next


def test_moodles_worksheet_says_when(tmp_path: Path) -> None:
    known = roster(tmp_path, MOODLE)
    found = read_times(tmp_path / "class.csv", CoursePolicy(), known)

    assert {"jose@x.org": "2026-11-20T23:59:00+00:00"} == {k: v.isoformat() for k, v in found.items()}


@pytest.mark.parametrize("text", ["soon", "03/04/2026 10:00", "10:00", "2026", "Friday", "1/1/1 1:1", "1e9"])
def test_no_time_is_guessed(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(f"id,submitted_at\n1,{text}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a time"):
        read_times(tmp_path / "t.csv", CoursePolicy(), None)


def test_of_two_times_the_later_counts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;submitted_at\n1;2026-01-02T00:00:00Z\n1;2026-01-01 10:00\n2;-\n", "utf-8")
    found = read_times(tmp_path / "t.csv", CoursePolicy(), None)

    assert {"1": "2026-01-02T00:00:00+00:00"} == {k: v.isoformat() for k, v in found.items()}


def test_ids_and_assignments_that_nobody_knows_are_said(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).resolve().parents[4] / "nbgrader_config.py", tmp_path)
    (tmp_path / "labs" / "lab01_mine").mkdir(parents=True)
    (tmp_path / "roster.csv").write_text("id,email\ns1,a@x.org\ns2,b@x.org\n")
    (tmp_path / "groups.csv").write_text("group,id\nred,s9\n")
    late = '[assignment.extensions]\n"s3" = 2026-11-09\n"b@x.org" = 2026-11-09\n"s1" = 2026-11-09\n'
    (tmp_path / "course.toml").write_text(
        '[course]\nroster = "roster.csv"\ngroups = "groups.csv"\n'
        '[[assignment]]\nname = "lab01_mien"\n'
        f'[[assignment]]\nname = "lab01_mine"\ndue = 2026-11-01\n{late}'
    )
    said = course_remarks(Course(tmp_path))

    assert "no assignment lab01_mien (did you mean lab01_mine?)" in said[0]
    assert "lab01_mine has an extension for s3, but no student has this id" in said[1]
    assert "has no effect; use the id s2 instead" in said[2]
    assert ("groups: no student has the id s9",) == said[3:]


def test_times_of_strangers_are_found() -> None:
    known = Roster((ClassMember("s1", keys=("s1", "101")),))
    moment = datetime(2026, 11, 1, tzinfo=UTC)

    assert ("999",) == unknown_keys({"s1": moment, "999": moment}, known)
    assert () == unknown_keys({"999": moment}, None)
