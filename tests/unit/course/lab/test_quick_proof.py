"""The quick proof of an exercise that is being written, and what its mistakes are told."""

from __future__ import annotations

import pytest

from edl_labs.cli.proof_tables import show_messages, show_proofs
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.build import build
from edl_labs.course.lab.proofs import NOT_TRIED, LabProof
from edl_labs.course.lab.prove import prove
from tests.unit.course.lab import kit


def quickly(course: Course) -> LabProof:
    """The quick proof of the small lab, built first."""
    build(course)
    return prove(course, kit.LAB, seeds=20, quick=True)


def test_a_quick_proof_runs_stub_solution_and_mistakes_once(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    proof = quickly(course)
    one = proof.exercises[0]
    show_proofs([proof])

    assert ([], 1, 2) == (proof.problems, proof.seeds, len(one.mistakes))
    assert ("not attempted, 0 points", "full marks with 1 seed") == (one.stub.text, one.solution.text)
    assert [NOT_TRIED] * 3 == [getattr(one, part) for part in ("hostile", "library", "declared")]
    assert "passed (quick)" in " ".join(capsys.readouterr().out.split())


def test_a_quick_proof_finds_a_mistake_that_is_told_something_else(course: Course) -> None:
    kit.replace(kit.mistakes(course), "# told: the", "# told: No, the")
    told = "'the duration came back as it was'; it does not contain 'No, the duration came back as it was'"

    assert [
        f"doubled_time: solutions/{kit.LAB}/mistakes/doubled_time.py:1: same: seed 1: the message is {told}"
    ] == quickly(course).problems


def test_messages_are_shown_with_why_and_next(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    kit.replace(kit.mistakes(course), "# told: the", "# told: No, the")
    show_messages([quickly(course)])

    assert [
        "! doubled_time.same: the duration came back as it was",
        "    why:  nothing was added",
        '    next: hint("doubled_time")',
        "  doubled_time.squared: the duration was squared",
        "    why:  two runs add up",
        '    next: hint("doubled_time")',
    ] == capsys.readouterr().out.splitlines()
