"""Reports of runs and of labs go to JSON and come back; their text holds nothing that XML or terminals mind."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from edl_labs.course.lab.build import BuildReport
from edl_labs.course.lab.proofs import ExerciseProof, Found, LabProof, MistakeProof
from edl_labs.course.run.checkfile import CheckReport
from edl_labs.course.run.doctor import DoctorReport, Row
from edl_labs.course.run.run_report import (
    ExerciseResult,
    NotebookResult,
    RanCell,
    RunFailure,
    RunReport,
    one_line,
    plain_text,
)
from edl_labs.course.start import StartReport
from edl_labs.values import Value

CELL = RanCell(0, "c-1", "x = 1", state="ran", seconds=0.5, max_points=2.0)
EXERCISE = ExerciseResult("sums", "passed", 2.0, 2.0)
NOTEBOOK = NotebookResult("lab90_small", "Small", "cpu", {"size": 3}, (CELL,), 1.5, (EXERCISE,))
SEEN = Found(True, "as it should be")
MISTAKE = MistakeProof("a", "mistakes/sums.py:1: a", True, "", "told", "said")
PROOF = ExerciseProof("sums", "code", 2.0, SEEN, Found(False, "half"), (MISTAKE,), SEEN, SEEN)
REPORTS = [
    RunReport("smoke", "cpu", 2.0, (NOTEBOOK,)),
    CheckReport("a.ipynb", "lab90_small", "Small", (EXERCISE,), (RunFailure("dead", "it died"),), 1.0),
    DoctorReport((Row("python", "ok", "3.12"),)),
    StartReport(Path("my labs"), ("lab90_small",), ("a",), (), ()),
    BuildReport(("lab90_small",), (), ""),
    LabProof("lab90_small", 20, (PROOF,)),
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_a_report_comes_back_from_its_json(report: Value) -> None:
    text = json.dumps(report.to_json())

    assert report == type(report).from_json(text)


@pytest.mark.parametrize(
    ("report", "derived"),
    [
        (REPORTS[0], {"schema": 1, "ok": True, "exit_code": 0}),
        (REPORTS[1], {"schema": 1, "exit_code": 4, "points": 2.0, "max_points": 2.0, "by_hand_points": 0}),
        (REPORTS[2], {"schema": 1, "ok": True, "exit_code": 0}),
        (REPORTS[4], {"schema": 1, "ok": True}),
        (REPORTS[5], {"schema": 1, "ok": False, "problems": ["sums: solution: half"]}),
    ],
)
def test_json_says_what_follows_from_a_report_too(report: Value, derived: dict[str, object]) -> None:
    assert derived == {key: report.to_json()[key] for key in derived}


def test_what_is_not_a_runs_result_stays_out_of_its_json() -> None:
    tree = REPORTS[0].to_json()

    assert "folder" not in tree
    assert "scores" not in tree["notebooks"][0]["cells"][0]
    assert "dead" == REPORTS[1].to_json()["failures"][0]["kind"]


def test_a_parameter_that_json_lacks_is_its_name() -> None:
    notebook = NotebookResult("lab90_small", "Small", "cpu", {"rate": math.nan}, (), 0.0)

    assert {"rate": "nan"} == notebook.to_json()["parameters"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;10;20;30mtrue colour\x1b[m", "true colour"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("\x9b1mbold", "bold"),
        ("\x1b(Bset", "set"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("lone \ud800 half", "lone  half"),
        ("\ufffe\uffff", ""),
        ("µ × − ✓ 😀\ttab\nline", "µ × − ✓ 😀\ttab\nline"),
        ("an escape at the end\x1b", "an escape at the end"),
    ],
)
def test_terminal_codes_and_forbidden_characters_are_gone(raw: str, expected: str) -> None:
    assert expected == plain_text(raw)


def test_every_character_comes_out_as_xml_can_hold_it() -> None:
    text = plain_text("".join(map(chr, range(0x3000))) + "".join(map(chr, range(0xD700, 0x10100))))

    ElementTree.fromstring(f"<a>{text.replace('&', '').replace('<', '')}</a>")


def test_a_long_text_is_cut_to_one_line_and_says_so() -> None:
    assert "a b…" == one_line("a\n b\nc d", limit=4)
