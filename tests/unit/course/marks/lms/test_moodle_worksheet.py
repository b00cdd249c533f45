"""Moodle's grading worksheet in other languages: columns by what is in them, in the order that Moodle writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.course.marks.lms import class_list_of, moodle, read_list
from edl_labs.course.marks.lms.moodle_worksheet import in_english
from edl_labs.course.marks.roster import read_roster, read_times
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import parse_table
from edl_labs.course.policy import CoursePolicy

GERMAN = (
    "ID,Vollständiger Name,E-Mail-Adresse,Status,Gruppe,Bewertung,Bestwertung,Bewertung kann geändert werden,"
    "Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),Feedback als Kommentar\n"
    'Teilnehmer/in101,Ada Lovelace,ada@x.org,Abgegeben,Gruppe A,,"20,00",Ja,"Freitag, 20. November 2026, 23:59",-,\n'
    'Teilnehmer/in102,Alan Turing,alan@x.org,Keine Abgabe,Gruppe B,"3,50","20,00",Ja,-,-,- bisher nichts\n'
)
FRENCH = (
    "Identifiant,Statut,Note,Note maximale,La note peut être modifiée,Dernière modification (travail remis),"
    "Dernière modification (note)\n"
    "Participant 7,Remis,,20.00,Oui,vendredi 20 novembre 2026 23:59,-\n"
    "Participant 8,Remis,,20.00,Oui,-,-\n"
)


@pytest.mark.parametrize("text", [GERMAN, FRENCH])
def test_a_worksheet_in_another_language_is_moodles(text: str) -> None:
    assert moodle is class_list_of(in_english(parse_table(text.encode(), "w.csv")))


def test_the_class_groups_and_times_are_read(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(GERMAN, encoding="utf-8")
    known = read_roster(tmp_path / "w.csv")
    times = read_times(tmp_path / "w.csv", CoursePolicy(), known)

    assert [("Ada Lovelace", "ada@x.org", "101"), ("Alan Turing", "alan@x.org", "102")] == [
        (who.name, who.email, who.lms_id) for who in known.students
    ]
    assert "Gruppe A" in known.students[0].teams
    assert {"ada@x.org": "2026-11-20T23:59:00+00:00"} == {who: when.isoformat() for who, when in times.items()}


def test_hidden_names_leave_numbers(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(FRENCH, encoding="utf-8")

    assert [("7", "7"), ("8", "8")] == [(who.id, who.name) for who in read_roster(tmp_path / "w.csv").students]


def test_marks_go_into_its_own_columns_under_its_own_header(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(GERMAN, encoding="utf-8")
    marks = (StudentMarks("ada@x.org", "Ada", "Lovelace", "", (), 17.5, 20.0),)
    made = moodle.marks_file(marks, numbers={}, table=read_list(tmp_path / "w.csv"), assignment="lab01", column="")

    assert GERMAN.replace('Gruppe A,,"20,00"', 'Gruppe A,"17,5","20,00"') == made.data.decode()
    assert ("Alan Turing",) == made.without


@pytest.mark.parametrize(
    "text",
    [
        "id,name,email\ns1234,Ada,ada@x.org\n",  # a plain table, whose ids have a letter and a number
        "Student,ID,SIS Login ID,Section,Lab 1 (77)\nAda Lovelace,101,ada,A,\n",
        "login,points,of,late\nparticipant7,3,20,20\n",
    ],
)
def test_other_tables_stay_as_they_are(text: str) -> None:
    table = parse_table(text.encode(), "t.csv")

    assert table is in_english(table)
