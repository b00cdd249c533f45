"""What lab03's train_it and dynamic_scale say of a call that is in the wrong place."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab03_mixed_precision.aligned_shapes import AlignedShapes, _strictest
from edl_labs.exercises.lab03_mixed_precision.train_it import _GRAPHS, _LAZY, _STEPS, _refuse_known, _trained

START = 2.0


def told(batch: str, *, loss: float = START, left_out: str = "") -> str:
    """What is said of `_STEPS` batches with these calls; nothing when none of the mistakes is known by them."""
    try:
        _refuse_known({"calls": batch * _STEPS}, loss, START, "why", left_out)
    except Wrong as wrong:
        return wrong.what
    return ""


@pytest.mark.parametrize(
    ("batch", "loss", "what"),
    [
        ("lzbsodou", float("nan"), "your loop calls optimizer.step() in addition to scaler.step()"),
        ("lbzsodu", START, "your loop zeroes gradients between backward() and the step"),
        ("lzbsodu", START, "the network did not learn: you did not scale its loss, or you divided it again"),
        ("lzbsodu", 1e12, "the steps are far too large: the gradients lack the loss_weight, or still have the scale"),
    ],
)
def test_the_calls_and_the_loss_name_the_mistake(batch, loss, what):
    assert what == told(batch, loss=loss)


def test_what_has_another_reason_is_left_to_it():
    assert "" == told("lzbsodu", left_out="the scale never changed")
    assert "" == told("lzsodu"), "backward() was never called"
    assert "" == told("lzbsdu"), "no step was taken"
    assert "" == told("lzbsodu", loss=1.5), "it learned something"


def test_zeroing_between_the_loss_and_backward_is_no_mistake():
    assert "did not scale" in told("lzbsodu")
    assert "zeroed" not in told("lzbsodu")


def kind_of(train) -> str:
    """The kind of what a loop returns that notes its steps in the `calls` of its scaler."""
    return _trained(train, None, range(3), None, SimpleNamespace(calls=[]), {})[0]


def steps(batches, scaler, *, requires_grad=False):
    import torch

    for batch in batches:
        scaler.calls.append("s")
        yield torch.tensor(float(batch), requires_grad=requires_grad)


def test_what_trains_only_while_it_is_read_is_no_list():
    assert _LAZY == kind_of(lambda model, batches, optimizer, scaler: steps(batches, scaler))
    assert _LAZY == kind_of(lambda model, batches, optimizer, scaler: map(float, steps(batches, scaler)))
    assert "list" == kind_of(lambda model, batches, optimizer, scaler: map(float, list(steps(batches, scaler))))


def test_tensors_that_keep_their_graph_are_no_list_of_floats():
    def kept(model, batches, optimizer, scaler):
        return [2 * loss for loss in steps(batches, scaler, requires_grad=True)]

    assert _GRAPHS == kind_of(kept)
    assert _GRAPHS == kind_of(lambda *given: sum(kept(*given)).repeat(3))
    assert "list" == kind_of(lambda *given: [loss.detach() for loss in kept(*given)])
    assert "list" == kind_of(lambda *given: [loss.item() for loss in kept(*given)])
    assert "list" == kind_of(lambda model, batches, optimizer, scaler: list(steps(batches, scaler)))


@pytest.mark.slow
def test_a_scaler_whose_step_unscales_again_hears_nothing_of_update(judged, solution):
    class Twice(solution["LossScaler"]):
        def step(self, optimizer):
            self.unscale_(optimizer)
            super().step(optimizer)

    class NeverForgets(solution["LossScaler"]):
        def update(self):
            unscaled = self.is_unscaled
            super().update()
            self.is_unscaled = unscaled

    assert "update() came in between" not in judged("dynamic_scale", LossScaler=Twice).what
    assert "update() came in between" in judged("dynamic_scale", LossScaler=NeverForgets).what


def _padded(rule, case):
    multiples = {"128 B": 1024 // case["bits"], "16 B": 128 // case["bits"]}
    choices = itertools.product(*([-(-side // m) * m for m in (1, *multiples.values())] for side in case["shape"]))

    def time_s(sides):
        obeyed = _strictest(multiples, lambda multiple: all(side % multiple == 0 for side in sides))
        return rule(*sides) / case["rates"][obeyed]

    return list(min(choices, key=time_s))


@pytest.mark.parametrize(
    ("work", "what"),
    [
        (lambda m, k, n: m * n, "your code pads k as if that cost nothing"),
        (lambda m, k, n: m + k + n, "your code adds up the sides"),
        (lambda m, k, n: m * k + k * n + m * n, "elements that are read and written"),
        (lambda m, k, n: m * k * n, None),
    ],
)
def test_another_work_is_known_by_all_its_paddings(exercises, work, what):
    cases = [case for case in exercises["aligned_shapes"].draw_cases(7) if case["ask"] == "padding"]
    got = [{"alignment": "", "padded": _padded(work, case)} for case in cases]
    want = [{"alignment": "", "padded": _padded(lambda m, k, n: m * k * n, case)} for case in cases]

    told = AlignedShapes().diagnose_all_cases(cases, got, want)

    assert told is None if what is None else what in told.what


def test_no_batch_before_the_first_step_overflows(exercises):
    """With weights of 0 its gradient would be finite, and every training right beside it."""
    for seed in range(3):
        for case in exercises["bug_hunt"].draw_cases(seed):
            assert all(abs(value) < 1e6 for batch in case["batches"][:2] for row in batch["x"] for value in row)
