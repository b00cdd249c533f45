"""A torch model with known times: nested, called twice, residual."""

from __future__ import annotations

import pytest
import torch

from edl_labs.exercises.lab05_profiling.timed_model import timed_model
from edl_labs.virtual import VirtualGPU

LEAF = {"forward_s": 1e-4, "backward_s": 3e-4, "children": []}


def durations(gpu):
    return [(entry["name"][0], entry["duration_s"]) for entry in gpu.program if entry["op"] == "launch"]


def test_backward_runs_in_the_opposite_order():
    gpu = VirtualGPU()
    plan = {"forward_s": 1e-3, "backward_s": 2e-3, "children": [["a", LEAF]]}
    timed_model(plan, gpu)(torch.ones(2, requires_grad=True)).sum().backward()

    assert [("f", 1e-3), ("f", 1e-4), ("b", 3e-4), ("b", 2e-3)] == durations(gpu)


def test_a_shared_child_runs_as_often_as_it_is_called():
    gpu = VirtualGPU()
    plan = {"forward_s": 1e-3, "backward_s": 2e-3, "children": [["a", {**LEAF, "times": 3}]]}
    timed_model(plan, gpu)(torch.ones(2, requires_grad=True)).sum().backward()

    assert 3 == durations(gpu).count(("f", 1e-4)) == durations(gpu).count(("b", 3e-4))


@pytest.mark.parametrize(("residual", "slope"), [(False, 1.0), (True, 2.0)])
def test_the_model_is_the_identity_or_twice_it(residual, slope):
    x = torch.ones(2, requires_grad=True)
    timed_model({**LEAF, "residual": residual}, VirtualGPU())(x).sum().backward()

    assert [slope] * 2 == x.grad.tolist()
