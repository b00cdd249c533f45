"""Whose an upload is: a group's number is never taken for a participant's."""

from __future__ import annotations

import pytest

from edl_labs.course.groups import Groups
from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms import canvas, moodle
from edl_labs.course.marks.lms.learning_system import ClassMember
from edl_labs.course.marks.owners import Owners, find_owners, find_teams
from edl_labs.course.marks.roster import Roster

LAB = "lab01.ipynb"


def member(id: str, first: str, last: str, number: str, *teams: str) -> ClassMember:
    keys = (id, number, f"participant {number}")
    return ClassMember(id, first, last, lms_id=number, keys=keys, teams=teams)


CLASS = Roster(
    (
        member("ada", "Ada", "Lovelace", "101", "Group A"),
        member("alan", "Alan", "Turing", "102", "Group A"),
        member("grace", "Grace Brewster", "Hopper", "103", "Default group"),
        member("s4", "", "", "104", "Group B"),
    )
)


def owners(*folders: str, groups: Groups | None = None, roster: Roster | None = CLASS) -> Owners:
    entries = [Entry(f"{folder}_assignsubmission_file_/{LAB}", b"") for folder in folders]
    uploads = [one for entry in entries if (one := moodle.upload(entry))]
    return find_owners(uploads, roster, find_teams(roster, (), groups or Groups()))


def students(found: Owners) -> list[str]:
    return [who.id for who, _ in found.files]


@pytest.mark.parametrize(
    ("folder", "whose"),
    [
        ("Group A_12", ["ada", "alan"]),
        ("Group A_103", ["ada", "alan"]),  # Grace's number is 103
        ("Group B_101", ["s4"]),
        ("Default group", ["grace"]),
        ("Ada Lovelace_101", ["ada"]),
        ("LOVELACE Ada_101", ["ada"]),
        ("Ada King Lovelace_101", ["ada"]),
        ("Group A-Ada Lovelace_101", ["ada"]),  # as Moodle 3 named files of groups
        ("Grace Hopper_103", ["grace"]),
        ("Participant_101", ["ada"]),
        ("Somebody Else_104", ["s4"]),  # the class has no name for this number
    ],
)
def test_a_file_belongs_to_a_participant_or_to_all_of_a_group(folder: str, whose: list[str]) -> None:
    found = owners(folder)

    assert whose == students(found)
    assert () == found.remarks


@pytest.mark.parametrize("folder", ["Group C_101", "Team Ada_101", "Ada_101", "Group C_77", "Group C"])
def test_a_group_without_members_is_a_remark_and_nobodys_file(folder: str) -> None:
    found = owners(folder)

    assert ([], 1) == (students(found), len(found.unmatched))
    assert "groups.csv" in found.remarks[0]
    assert ("101" in folder) == ("that of Ada Lovelace" in found.remarks[0])


def test_groups_csv_names_the_members_where_moodle_does_not() -> None:
    groups = Groups({"grace": "Group C", "ada": "Group C"})

    assert ["ada", "grace"] == students(owners("Group C_102", groups=groups))
    assert ["ada", "grace"] == students(owners("Group C_102", groups=groups, roster=None))


def test_each_member_gets_feedback_under_their_own_name() -> None:
    found = owners("Group A_12")

    assert ["Ada Lovelace_101_assignsubmission_file_", "Alan Turing_102_assignsubmission_file_"] == [
        files[0].prefix for _, files in found.files
    ]


def test_canvas_s_test_student_is_left_out_unless_the_class_has_them() -> None:
    upload = canvas.upload(Entry(f"studenttest_900_9001_{LAB}", b""))
    assert upload is not None
    left, taken = (find_owners([upload], roster, {}) for roster in (None, Roster((member("t", "T", "S", "900"),))))

    assert ([], ("Canvas's test student was left out",), ()) == (students(left), left.remarks, left.unmatched)
    assert ["t"] == students(taken)
