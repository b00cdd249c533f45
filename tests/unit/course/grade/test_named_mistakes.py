"""In grading, a failed exercise is asked the public cases too: a known mistake gives its message, and no points."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.checks import Outcome, plain_data
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.lab_facts import facts
from edl_labs.checks.probe_process import ProbeProcess
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.judge_process import Judge
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.lab.read import read_lab
from edl_labs.course.sandbox.kernel.exchange import KernelDied, Violation
from tests.labs.conftest import SOLUTIONS

LAB, NAME = "lab08_kernels", "tile_choice"
LOST = Outcome(NAME, LAB, "wrong", 0.0, 3.0, what="a part is priced otherwise", why="values are withheld", next="look")


@pytest.fixture(scope="module")
def evidence() -> dict[str, Any]:
    """What three submissions give for the public cases: a known mistake, another one, and the solution."""
    lab = read_lab(Course(SOLUTIONS.parent), LAB)
    known = {one.name: one.code for one in lab.mistakes if one.exercise == NAME}
    own = "_right = product_s\ndef product_s(*asked):\n    return 1.01 * _right(*asked)\n"
    cells = {"known": known["tiles_smallest"], "own": own, "right": ""}
    cases, _ = facts(LAB).golden(NAME)
    with ProbeProcess(lab.namespace_cells()) as origin:
        found = {}
        for who, code in cells.items():
            with origin.fork([(who, code)]) as process:
                found[who] = process.collect(NAME, cases)
    return found


class Check:
    """A kernel at its check, which answers with `records`, or raises them."""

    def __init__(self, records: Any) -> None:
        self.records, self.kept, self.asked = records, list[Outcome](), 0

    def keep(self, outcome: Outcome) -> None:
        self.kept.append(outcome)

    def ask(self, request: bytes) -> Any:
        self.asked += 1
        if isinstance(self.records, Exception):
            raise self.records
        return SimpleNamespace(data=plain_data.encode(self.records))


def said(check: Check, outcome: Outcome = LOST) -> Outcome:
    exercise = next(one for one in load_lab(LAB) if one.name == NAME)
    runner, nothing = SimpleNamespace(request=lambda exercise, cases: b""), {}
    with Judge() as judge:
        examiner = Examiner(runner, nothing, judge, nothing)  # type: ignore[arg-type]
        return examiner._named(exercise, check, outcome)  # type: ignore[arg-type]


def test_a_known_mistake_gives_its_whole_message_and_the_mark_stays(evidence):
    check = Check(evidence["known"])
    found = said(check)
    (known,) = (one for one in facts(LAB).known_mistakes(NAME) if one.what == found.what)

    assert "your function always chooses the smallest tile" == found.what
    assert (known.why, known.next) == (found.why, found.next)
    assert (LOST.points, LOST.state, LOST.max_points) == (found.points, found.state, found.max_points)
    assert [LOST] == check.kept


@pytest.mark.parametrize("who", ["own", "right"])
def test_what_no_known_mistake_explains_keeps_the_judges_message(evidence, who):
    assert LOST == said(Check(evidence[who]))


@pytest.mark.parametrize("records", [[], [{"value": {"parts": 1}}] * 6, [{"error": {"type": "X", "message": "m"}}] * 6])
def test_evidence_of_another_form_changes_nothing(records):
    assert LOST == said(Check(records))


def test_a_kernel_that_refuses_the_second_question_costs_nothing():
    assert LOST == said(Check(Violation("deadline", why="late", alive=True)))


def test_the_outcome_is_kept_before_a_kernel_may_die():
    check = Check(KernelDied("gone"))

    with pytest.raises(KernelDied):
        said(check)

    assert [LOST] == check.kept


def test_a_right_answer_is_not_asked_again():
    check, passed = Check([]), Outcome(NAME, LAB, "passed", 3.0, 3.0)

    assert passed == said(check, passed)
    assert 0 == check.asked
