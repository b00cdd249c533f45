"""What lab06 says of a step, of a plan and of costs, from their operations alone."""

from __future__ import annotations

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.judge.drawn_tapes import least_again_by_sum
from edl_labs.exercises.lab06_memory.method_symptoms import cost_mistake
from edl_labs.exercises.lab06_memory.placement_habits import Placed, placement_habit
from edl_labs.exercises.lab06_memory.plan_symptoms import TRIED as PLANS
from edl_labs.exercises.lab06_memory.plan_symptoms import issue_mistake
from edl_labs.exercises.lab06_memory.stretch_symptoms import TRIED, gone_symptom, raised_text, step_mistake
from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory import Tape, VirtualTape
from edl_labs.virtual.memory import stepped as stepped_rightly

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


def missing(operations):
    """What is said of operations on the chain, the last of which finds nothing to read."""
    step = VirtualTape(CHAIN)
    for name, layer, *keep in operations[:-1]:
        getattr(step, name)(layer, **({"keep": keep[0]} if keep else {}))
    name, layer, *keep = operations[-1]
    with pytest.raises(VirtualMemoryError) as caught:
        getattr(step, name)(layer, **({"keep": keep[0]} if keep else {}))
    return gone_symptom(step.program, raised_text(caught.value), TRIED)


FORWARD = [("forward", i, i in (2, 5)) for i in range(6)]


@pytest.mark.parametrize(
    ("operations", "what", "why", "then"),
    [
        (
            [*FORWARD, ("backward", 5), ("drop", 3), ("drop", 4), ("recompute", 4)],
            "recompute(4) cannot find the output of layer 3 in memory",
            "drop(3) freed it",
            "recompute(3) before recompute(4)",
        ),
        (
            [*FORWARD, ("backward", 5), ("backward", 4)],
            "backward(4) cannot find the activations of layer 4 in memory",
            "forward(4, keep=False) kept only its output",
            "again before its own backward pass",
        ),
        (
            [*FORWARD[:3], ("drop", 2), ("forward", 3, False)],
            "forward(3) cannot find the output of layer 2 in memory",
            "drop(2) freed it",
            "call drop(2) only after layer 3 has read it",
        ),
        (
            [*FORWARD, ("drop", 4), ("backward", 5)],
            "backward(5) cannot find the output of layer 4 in memory",
            "drop(4) freed it",
            "keep the output of layer 4 until layer 5 has run backward",
        ),
    ],
)
def test_who_let_go_of_what_a_pass_reads_is_said(operations, what, why, then):
    found = missing(operations)

    assert what == found.what
    assert found.why.endswith(why)
    assert then in found.next


@pytest.mark.parametrize("raised", ["", "KeyError: 3", "VirtualMemoryError: layer 1 (layer1) runs forward twice"])
def test_what_is_raised_for_another_reason_is_not_said_to_be_gone(raised):
    assert gone_symptom([], raised, TRIED) is None


def layer(activation, output, forward_s, *, once=False):
    return {"activation_bytes": activation, "output_bytes": output, "forward_s": forward_s, "once": once}


def test_the_least_seconds_by_a_sum_by_hand():
    """Layers of 6, 4 and 4 bytes that hand on 1 each.

    Two single stretches wait with 1 + 1 + 4 bytes, and 6 run again beside them: 12, or 11 less the output of the one
    that runs. All three have 3 and 6: 9, or 8. Keeping everything takes 14.
    """
    layers = [layer(6, 1, 1.0), layer(4, 1, 2.0), layer(4, 1, 4.0)]
    found = [least_again_by_sum({"layers": layers, "budget_bytes": budget}) for budget in (14, 12, 11, 9, 8, 7)]
    layers[1]["once"] = True

    assert [[0.0, 0.0], [3.0, 3.0], [7.0, 3.0], [7.0, 7.0], [-1.0, 7.0], [-1.0, -1.0]] == found
    assert [5.0, 5.0] == least_again_by_sum({"layers": layers, "budget_bytes": 12})


def placed(stretches, *, count=6, again_s=1.0, is_right=False, summed=(-1.0, -1.0)):
    case = {"layers": [{"forward_s": 1.0, "backward_s": 2.0}] * count, "least_bytes": 1}
    return Placed(case, stretches, is_right, not is_right, 2, -1, again_s, list(summed))


def test_who_sums_up_what_waits_is_told_that_it_is_gone():
    slow = [placed([(0, 2)], again_s=3.0, summed=(3.0, 2.0)), placed([(1, 3)], again_s=4.0, summed=(4.0, 4.0))]
    unfitting = placed([], again_s=-1.0)
    other = placed([(0, 2), (3, 4)], again_s=2.5, summed=(2.0, 3.0))

    assert "your code counts more at the peak than is held at once" == placement_habit([*slow, unfitting]).what
    assert "your code counts more at the peak than is held at once" != _what(placement_habit([*slow, unfitting, other]))


def test_equal_cuts_are_named_unless_they_depend_on_more_than_the_layers():
    cut = [placed([(0, 2), (2, 4)]), placed([(0, 3), (3, 6)], count=9), placed([(2, 4)])]

    assert "your code cuts the layers into equal stretches" == _what(_with_sums(cut))
    assert "your code cuts the layers into equal stretches" != _what(_with_sums([*cut, placed([(0, 3), (3, 6)])]))
    assert "your code cuts the layers into equal stretches" != _what(_with_sums([*cut, placed([(1, 3), (3, 5)])]))


def _with_sums(found):
    """The habit of placements that no sum explains."""
    return placement_habit([Placed(**{**vars(one), "summed_again_s": [9.0, 9.0]}) for one in found])


def _what(wrong):
    return wrong.what if wrong else ""


def _told_alone(exercises, run_step):
    """What is said of `run_step` while `place` is a stub."""
    spec = exercises["place_checkpoints"].spec
    case = {
        "budget_bytes": 99,
        "summed_again_s": [0.0, 0.0],
        "layers": [{**vars_of(one), "once": False} for one in CHAIN.layers],
    }

    class Student:
        @staticmethod
        def place(layers, budget_bytes):
            raise NotImplementedError

    Student.run_step = staticmethod(run_step)
    got = spec.probe(Student, case)
    with pytest.raises(Wrong) as caught:
        spec.compare(case, got, {"makespan_s": 1.0, "again": 0})
    return caught.value.what


def vars_of(one):
    names = ("name", "activation_bytes", "output_bytes", "forward_s", "backward_s")
    return {name: getattr(one, name) for name in names}


def test_run_step_is_looked_at_before_place_is_written(exercises, solution):
    def outputs_stay(step, stretches):
        for entry in stepped_rightly(step.tape, stretches).program:
            if entry["op"] != "drop":
                getattr(step, entry["op"])(entry["layer"], **({"keep": entry["keep"]} if "keep" in entry else {}))

    def stops(step, stretches):
        for i in range(6):
            step.forward(i, keep=True)

    assert "`run_step()` is right, but `place()` is not written yet" == _told_alone(exercises, solution["run_step"])
    assert "your code never drops the outputs inside a stretch" == _told_alone(exercises, outputs_stay)
    assert "your step is incomplete" == _told_alone(exercises, stops)


def test_a_stub_of_both_is_a_stub(exercises):
    def stub(step, stretches):
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        _told_alone(exercises, stub)
