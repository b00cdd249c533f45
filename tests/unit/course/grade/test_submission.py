"""What was saved in another way is read as it was meant, or it is said: no cell vanishes, and no mark with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.submission import Unreadable, parse
from edl_labs.course.grade.submitted_folder import read_submission

ESSAY = "Die Fläche ist größer: “naïve” – ça va."


def notebook(essay: str = ESSAY, **more: object) -> str:
    cell = {"cell_type": "markdown", "source": essay, "metadata": {"nbgrader": {"grade_id": "why"}}}
    return json.dumps({"cells": [cell], **more}, ensure_ascii=False)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_an_essay_is_read_in_any_encoding_that_is_sure(encoding: str):
    found = parse(notebook().encode(encoding))

    assert [ESSAY] == [cell.source for cell in found.cells]
    assert encoding.startswith("utf-8") == (not found.notes)


def test_letters_that_may_be_anything_are_said_and_no_cell_is_lost():
    found = parse(notebook("Площадь больше").encode("cp1251"))

    assert 1 == len(found.cells)
    assert "the first one at byte" in found.notes[0]


def test_letters_lost_beside_utf8_are_counted_as_lost():
    found = parse(notebook("ä and X").encode().replace(b"X", b"\xe9"))

    assert ["ä and \ufffd"] == [cell.source for cell in found.cells]
    assert "are not UTF-8" in found.notes[0]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_unfinished_merge_is_named_with_its_line(newline: str):
    lines = ("{", "<<<<<<< HEAD", '"cells": [', "=======", '"cells":[', ">>>>>>> main", "]}")
    with pytest.raises(Unreadable, match="Git conflict markers") as caught:
        parse(newline.join(lines).encode())

    assert "line 2 begins with <<<<<<<: a merge was not finished" == caught.value.why


@pytest.mark.parametrize("data", [b"\xff\xfe{\x00\x00", b'{"cells": []}', notebook().encode("utf-16")[:-1]])
def test_what_is_no_notebook_is_said_with_what_to_do(data: bytes):
    with pytest.raises(Unreadable) as caught:
        parse(data)

    assert caught.value.why
    assert caught.value.next


def lab(question: str) -> Assignment:
    cells = (
        KnownCell("markdown", "explain-why", question, question, {}, "locked", "why_question"),
        KnownCell("markdown", "answer-why", "your answer", "because", {}, "answer", "why", 2.0),
    )
    return Assignment("lab01_mine", cells, (), {}, {}, own_exercises=False)


def test_line_ends_of_windows_are_no_change():
    cells = [{"cell_type": "markdown", "id": "explain-why", "source": "Why?\r\nSay it.\r\n", "metadata": {}}]
    plan = make_plan(lab("Why?\nSay it."), parse(json.dumps({"cells": cells}).encode()))

    assert not plan.tampered


def test_another_labs_notebook_is_named_and_ones_own_is_not():
    other = {"metadata": {"edl_labs": {"lab": "lab02_other"}}}
    mine = parse(notebook("Because.", **other).encode())
    foreign = parse(notebook("Because.", **other).replace('"why"', '"what"').encode())

    assert "Because." in [cell.source for cell in make_plan(lab("Why?"), mine).cells]
    with pytest.raises(Unreadable, match="the notebook of lab02_other, not of lab01_mine"):
        make_plan(lab("Why?"), foreign)


def test_python_files_that_are_too_large_are_named_with_their_size(tmp_path: Path):
    (tmp_path / "lab.ipynb").write_text(notebook())
    (tmp_path / "helpers.py").write_text("x = 1\n" * 100_000)
    with pytest.raises(Unreadable, match=r"helpers\.py is too large") as one:
        read_submission(tmp_path, "lab")
    (tmp_path / "helpers.py").write_text("x = 1\n" * 50_000)
    (tmp_path / "others.py").write_text("x = 1\n" * 50_000)
    with pytest.raises(Unreadable, match="Python files next to the notebook are too large") as both:
        read_submission(tmp_path, "lab")

    assert "it has 600,000 bytes, but the limit is 524,288 bytes" == one.value.why
    assert "they have 600,000 bytes, but the limit for all of them together is 524,288 bytes" == both.value.why
    assert "only the code that the notebook imports" in one.value.next == both.value.next
