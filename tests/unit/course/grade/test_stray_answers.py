"""An answer in prose is found wherever a student typed it, and an empty one stays empty."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edl_labs.checks import RegisteredExercise
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade import stray_answers
from edl_labs.course.grade.plan import MarkingPlan, make_plan
from edl_labs.course.grade.submission import Submission, SubmittedCell

ESSAY = (
    "The forward pass is timed alone because the backward pass overlaps with the copies, so that one clock cannot tell "
    "which of the two was slow on this machine."
)
SHORT = "Because copies overlap."
CHINESE = "前向传播单独计时，因为反向传播分别选择自己的算法，所以不能把两毫秒的加速归因于两者，表中的两行只说明前向。"
Cells = list[SubmittedCell]


def cell(kind: str, id: str, source: str, role: str = "", grade_id: str = "") -> KnownCell:
    return KnownCell(kind, id, source, source, {}, role, grade_id, 3.0 if role in ("check", "answer") else 0.0)


LAB = Assignment(
    "lab",
    (
        cell("markdown", "title", "# Title"),
        cell("code", "solve-area", "def area():\n    ...", "solve", "area"),
        cell("code", "check-area", 'check("area")', "check", "check_area"),
        cell("markdown", "prose", "## Why?"),
        cell("markdown", "question", "Why forward only?", "locked", "why_question"),
        cell("markdown", "answer", "YOUR ANSWER HERE", "answer", "why"),
        cell("markdown", "next", "## The next section"),
        cell("code", "last", "1 + 1"),
    ),
    (RegisteredExercise("area", "lab", None),),
    {},
    {},
    own_exercises=False,
)
AT = {known.id: index for index, known in enumerate(LAB.cells)}


def released() -> Cells:
    return [SubmittedCell(c.kind, c.id, c.source, c.grade_id) for c in LAB.cells]


def new(source: str = ESSAY, kind: str = "markdown", **more: object) -> SubmittedCell:
    return SubmittedCell(kind, "mine", source, **more)  # type: ignore[arg-type]


def put(where: int, *cells: SubmittedCell, without: str = "") -> Cells:
    """The released cells with `cells` before the one at `where`, and one left out."""
    found = released()
    found[where:where] = cells
    return [one for one in found if one.id != without or not without]


def changed(id: str, source: str) -> Cells:
    found = released()
    found[AT[id]] = SubmittedCell(found[AT[id]].kind, id, source, found[AT[id]].grade_id)
    return found


def bare(cells: Cells) -> Cells:
    """Without ids and metadata, as other editors save notebooks."""
    return [SubmittedCell(c.kind, "", c.source) for c in cells]


def plan_of(cells: Cells) -> MarkingPlan:
    return make_plan(LAB, Submission(tuple(cells)))


PRINTED = f'print("{ESSAY}")'
COMMENT = "\n".join(f"# {part}" for part in (ESSAY[:60], ESSAY[60:]))
TEXTS = {
    "markdown": new(),
    "short": new(SHORT),
    "raw": new(kind="raw"),
    "string": new(f'"""{ESSAY}"""', "code"),
    "printed": new(PRINTED, "code"),
    "assigned": new(f"answer = '''{ESSAY}'''", "code"),
    "comment": new(COMMENT, "code"),
    "no_python": new(ESSAY, "code"),
}
COPIED = "def area():" + "\n    return first_width * first_height + second_width * second_height" * 9
NEAR = {"below the answer": AT["next"], "above the answer": AT["answer"], "above the question": AT["question"]}
FAR = {"at the end": len(LAB.cells), "at the top": 0, "after the check": AT["prose"]}
PLACEMENTS: dict[str, Callable[[], Cells]] = {
    **{f"{text} {where}": lambda t=text, w=where: put(NEAR[w], TEXTS[t]) for text in TEXTS for where in NEAR},  # type: ignore[misc]
    **{f"markdown {where}": lambda w=where: put(FAR[w], new()) for where in FAR},  # type: ignore[misc]
    **{f"printed {where}": lambda w=where: put(FAR[w], TEXTS["printed"]) for where in FAR},  # type: ignore[misc]
    "in the answer": lambda: changed("answer", ESSAY),
    "below the question's text": lambda: changed("question", f"Why forward only?\n\n{ESSAY}"),
    "above the question's text": lambda: changed("question", f"{ESSAY}\n\nWhy forward only?"),
    "in the prose above": lambda: changed("prose", f"## Why?\n{ESSAY}"),
    "in the next section": lambda: changed("next", f"{ESSAY}\n\n## The next section"),
    "in place of the question": lambda: changed("question", ESSAY),
    "in place of the answer": lambda: put(AT["answer"], new(), without="answer"),
    "in place of both": lambda: [c for c in put(AT["question"], new(), without="answer") if c.id != "question"],
    "in two cells": lambda: put(AT["next"], new(ESSAY[:50]), new(ESSAY[50:])),
    "around the answer": lambda: [
        *(*released()[: AT["answer"]], new(ESSAY[:50])),
        *(released()[AT["answer"]], new(ESSAY[50:]), *released()[AT["next"] :]),
    ],
    "in the first copy of the answer": lambda: put(AT["answer"], SubmittedCell("markdown", "x", ESSAY, "why")),
    "in the second copy of the answer": lambda: put(AT["next"], SubmittedCell("markdown", "x", ESSAY, "why")),
    "below an emptied answer": lambda: [*changed("answer", "")[: AT["next"]], new(), *released()[AT["next"] :]],
    "in the title": lambda: changed("title", f"# Title\n{ESSAY}"),
    "as a comment in a demonstration": lambda: changed("last", f"1 + 1\n{COMMENT}"),
    "as a string in a demonstration": lambda: changed("last", f'1 + 1\n"""\n{ESSAY}\n"""'),
    "printed in a demonstration": lambda: changed("last", f"1 + 1\n{PRINTED}"),
    "as a comment in a solution": lambda: changed("solve-area", f"def area():\n    return 3 * 4\n\n{COMMENT}"),
    "as a string in a solution": lambda: changed("solve-area", f"def area():\n    '''{ESSAY}'''\n    return 3 * 4"),
    "as a comment in a check": lambda: changed("check-area", f'check("area")\n{COMMENT}'),
    "in place of a check": lambda: changed("check-area", ESSAY),
    "short, in place of a deleted answer": lambda: [*put(len(LAB.cells), new(SHORT), without="answer")],
    "raw at the top": lambda: put(0, TEXTS["raw"]),
    "in Chinese, at the end": lambda: put(FAR["at the end"], new(CHINESE)),
    "in Chinese, printed": lambda: put(NEAR["below the answer"], new(f'print("{CHINESE}")', "code")),
    "in Chinese, in the title": lambda: changed("title", f"# Title\n{CHINESE}"),
    "without ids, in the answer": lambda: bare(changed("answer", ESSAY)),
    "without ids, below the question": lambda: bare(put(AT["answer"], new(), without="answer")),
    "without ids, below the answer": lambda: bare(put(AT["next"], new())),
    "without ids, in the question": lambda: bare(changed("question", f"Why forward only?\n{ESSAY}")),
}


@pytest.mark.parametrize("where", PLACEMENTS)
def test_an_answer_is_found_where_it_was_typed(where: str) -> None:
    plan = plan_of(PLACEMENTS[where]())
    answer = " ".join(plan.answers()["why"].split())

    wanted = SHORT if where.startswith("short") else CHINESE if "Chinese" in where else ESSAY[:40]
    assert wanted in answer.replace("# ", "")
    assert "why" not in plan.untouched()


def test_there_are_many_placements() -> None:
    assert 60 <= len(PLACEMENTS)


@pytest.mark.parametrize("id", ["question", "check-area"])
def test_what_was_typed_in_a_restored_cell_can_be_read_below_it_and_does_not_run(id: str) -> None:
    cells = changed(id, f"{LAB.cells[AT[id]].source}\n{SHORT}")
    cells[AT["answer"]] = SubmittedCell("markdown", "answer", ESSAY, "why")
    plan = plan_of(cells)
    kept = next(i for i, cell in enumerate(plan.cells) if cell.source == SHORT)

    assert id == getattr(plan.cells[kept - 1].known, "id", "")
    assert not plan.cells[kept].runs
    assert ESSAY == plan.answers()["why"]


@pytest.mark.parametrize(
    "cells",
    [
        released(),
        bare(released()),
        put(AT["next"], new("---")),
        put(AT["next"], new("x = area()", "code")),
        put(AT["next"], new(f"plot(area(), title={ESSAY[:30]!r})", "code")),
        put(0, new(SHORT)),  # a remark far from the question
        put(AT["next"], new('f"' + "{a}" * 130_000 + '"', "code")),  # Python takes 10 s to parse it
        put(AT["next"], new(f'"""{ESSAY * 200}"""', "code")),  # too long for an essay: not parsed
        put(AT["next"], new(COPIED, "code")),  # the released head of a function, and work
        changed("answer", ""),
        changed("last", f"1 + 1  # {SHORT}"),
        changed("solve-area", "def area():\n    # the first width\n    a = 3\n" + "    # and more\n    a += 1\n" * 20),
        changed("check-area", 'check("area")  # ok'),
        put(len(LAB.cells), new(CHINESE[:12])),
    ],
)
def test_an_answer_that_nobody_gave_stays_empty(cells: Cells) -> None:
    assert "why" in plan_of(cells).untouched()


def test_what_a_student_typed_is_still_in_its_place_and_a_note_says_so() -> None:
    plan = plan_of(put(AT["next"], new()))

    assert 2 == sum(ESSAY in cell.source for cell in plan.cells)
    assert ["the answer to why was found outside its cell, and was copied into it"] == [
        note.text for note in plan.notes
    ]


def test_a_picture_alone_is_an_answer() -> None:
    picture = {"a.png": {"image/png": "iVBORw0KGgo="}}
    plan = plan_of(put(AT["next"], new("![](attachment:a.png)", attachments=picture)))
    answer = next(cell for cell in plan.cells if cell.known and cell.known.role == "answer")

    assert picture == answer.attachments


def test_code_is_parsed_in_another_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stray_answers, "ast", None)

    assert ESSAY in plan_of(put(AT["next"], TEXTS["printed"])).answers()["why"]


def test_code_that_takes_too_much_to_parse_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stray_answers, "bounded_call", lambda function, *arguments: None)

    assert "why" in plan_of(put(AT["next"], TEXTS["printed"])).untouched()
