"""autocast_dtype: the solution against torch itself, on CPU and, with tensors that hold no numbers, on CUDA."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from edl_labs.checks.lab_facts import facts
from edl_labs.exercises.lab03_mixed_precision.autocast_dtypes import CHANCE

F = torch.nn.functional
RUNS = {
    "linear": F.linear,
    "matmul": torch.matmul,
    "conv2d": lambda a, b: F.conv2d(a[None, None], b[None, None]),
    "scaled_dot_product_attention": lambda a: F.scaled_dot_product_attention(*[a[None, None]] * 3),
    "add": torch.add,
    "cat": lambda a, b: torch.cat([a, b]),
    "relu": F.relu,
    "gelu": F.gelu,
    "max_pool2d": lambda a: F.max_pool2d(a[None, None], 2),
    "batch_norm": lambda a: F.batch_norm(a, None, None, training=True),
    "layer_norm": lambda a: F.layer_norm(a, (8,)),
    "softmax": lambda a: F.softmax(a, -1),
    "sum": torch.sum,
    "mean": torch.mean,
    "exp": torch.exp,
    "mse_loss": F.mse_loss,
    "cross_entropy": lambda a: F.cross_entropy(a, torch.zeros(8, dtype=torch.long, device=a.device)),
}


@contextmanager
def autocast(device_type, dtype):
    """Autocast also for a device that is not here, which torch.autocast switches off."""
    was = torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type)
    torch.set_autocast_enabled(device_type, True)
    torch.set_autocast_dtype(device_type, dtype)
    try:
        yield
    finally:
        torch.set_autocast_enabled(device_type, was[0])
        torch.set_autocast_dtype(device_type, was[1])
        torch.clear_autocast_cache()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [1, 2])
def test_the_solution_says_what_torch_does(solution, exercises, seed):
    wrong = []
    for case in exercises["autocast_dtype"].draw_cases(seed):
        device_type, low = case["device_type"], getattr(torch, case["dtype"])
        with FakeTensorMode(), autocast(device_type, low):
            given = [torch.zeros(8, 8, device=device_type, dtype=getattr(torch, one)) for one in case["inputs"]]
            came = str(RUNS[case["op"]](*given).dtype).removeprefix("torch.")
        said = solution["autocast_dtype"](case["op"], case["inputs"], device_type=device_type, dtype=case["dtype"])
        wrong += [(case, came, said)] if came != said else []

    assert [] == wrong


RULES = {
    "always the short type": lambda op, inputs, device_type, dtype: dtype,
    "always float32": lambda op, inputs, device_type, dtype: "float32",
    "as the first input": lambda op, inputs, device_type, dtype: inputs[0],
    "as the widest input": lambda op, inputs, device_type, dtype: max(inputs, key=lambda one: one[-2:] != "16"),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_single_rule_earns_nothing(exercises, solution, rule, seed):
    exercise, right = exercises["autocast_dtype"], []
    for case in exercise.draw_cases(seed):
        given = {"device_type": case["device_type"], "dtype": case["dtype"]}
        right.append(
            RULES[rule](case["op"], case["inputs"], **given)
            == solution["autocast_dtype"](case["op"], case["inputs"], **given)
        )

    assert sum(right) / len(right) <= CHANCE
    assert 0 == exercise.spec.combine([float(one) for one in right])


def test_goldens_hold_what_table_and_text_show_and_leave_operators_of_each_kind_to_the_student(exercises):
    cases, _ = facts("lab03_mixed_precision").golden("autocast_dtype")
    public, drawn = {case["op"] for case in cases}, {case["op"] for case in exercises["autocast_dtype"].draw_cases(1)}

    table = {"linear", "layer_norm", "batch_norm", "gelu", "relu", "softmax"}
    text = {"sum", "mean", "exp", "mse_loss", "cross_entropy"}
    assert table | text | {"add", "scaled_dot_product_attention"} == public
    assert {"matmul", "conv2d", "cat", "max_pool2d"} == drawn - public


def test_torchs_dtypes_pass_for_their_names(judged, solution):
    outcome = judged(
        "autocast_dtype", autocast_dtype=lambda *a, **k: getattr(torch, solution["autocast_dtype"](*a, **k))
    )

    assert "passed" == outcome.state
