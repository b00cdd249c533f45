"""What lab06 says of a step, of a plan and of costs, from their operations alone."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab06_memory.method_symptoms import cost_mistake
from edl_labs.exercises.lab06_memory.plan_symptoms import TRIED as PLANS
from edl_labs.exercises.lab06_memory.plan_symptoms import issue_mistake
from edl_labs.exercises.lab06_memory.stretch_symptoms import TRIED, step_mistake
from edl_labs.virtual.memory import Tape, VirtualTape

CHAIN = Tape.chain(6, activation_bytes=9, output_bytes=2, forward_s=1.0, backward_s=2.0)


def stepped(run_step):
    step = VirtualTape(CHAIN)
    run_step(step, TRIED)
    return step.program


def test_a_right_step_and_right_plans_are_told_nothing(solution):
    programs = []
    for plan in PLANS:
        step = VirtualTape(Tape.chain(5, activation_bytes=9, output_bytes=2, forward_s=1.0, backward_s=2.0))
        solution["issue"](step, plan)
        programs.append(step.program)

    assert step_mistake(stepped(solution["run_step"])) is None
    assert issue_mistake(programs) is None


def test_who_drops_after_the_forward_pass_is_told_nothing_either():
    """Outputs inside a stretch may go later than in the solution."""

    def late(step, stretches):
        inside = {i: stretch for stretch in stretches for i in range(*stretch)}
        for i in range(6):
            step.forward(i, keep=i not in inside)
        for i, (_, stop) in inside.items():
            if i + 1 < stop:
                step.drop(i)
        for i in reversed(range(6)):
            if i in inside and i + 1 == inside[i][1]:
                for j in range(*inside[i]):
                    step.recompute(j)
            step.backward(i)

    assert step_mistake(stepped(late)) is None


@pytest.mark.parametrize("program", [[], [{"op": "forward"}], [None], ["x"], [{"op": "drop", "layer": 1}]])
def test_what_is_no_program_is_told_nothing(program):
    assert step_mistake(program) is None
    assert issue_mistake([program, program]) is None
    assert issue_mistake(program) is None


@pytest.mark.parametrize("costs", [[], [[1.0, 2.0]], [[1.0, 2.0]] * 4])
def test_costs_that_are_right_or_none_are_told_nothing(costs):
    job = {"batch": 4, "parts": 2, "reduce_s": 0.1, "update_s": 0.1, "fixed_bytes": 1, "example_bytes": 1}
    job |= {"kept_share": 0.5, "copy_byte_per_s": 1.0, "example_s": 0.1, "least_s": 0.1}

    assert cost_mistake(job, costs, [[1.0, 2.0]] * 4) is None
