"""What a check and a student's grading may cost: processor time, so that a busy machine changes little."""

from __future__ import annotations

import time

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.spec import given_halves
from tests.labs.lab11.test_without_triton import EXERCISES, LAB, notebook  # noqa: F401  (a fixture)

CHECK_CPU_S = 5.0  # promised for the public check of any exercise
GRADING_CPU_S = 3.0  # promised for a student's grading: the graded exercises of the lab


def test_each_check_and_a_grading_stay_within_their_budgets(notebook: dict[str, object]) -> None:  # noqa: F811
    spent = {}
    collect(EXERCISES["row_softmax"], notebook, given_halves(EXERCISES["row_softmax"].draw_cases(2)))  # imports torch
    for name, exercise in EXERCISES.items():
        started = time.process_time()
        cases = exercise.draw_cases(1)
        records = collect(exercise, notebook, given_halves(cases))
        wanted = [{} if exercise.spec.source_is_evidence else record["value"] for record in records]
        assert "passed" == judge(exercise, cases, records, wanted, points=1.0).state
        spent[name] = time.process_time() - started
    graded = sum(spent[one.name] for one in LAB.exercises if not one.optional and one.name in spent)

    assert [] == [(name, s) for name, s in spent.items() if s > CHECK_CPU_S]
    assert graded <= GRADING_CPU_S, spent
