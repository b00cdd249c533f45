"""The solution's scaler against torch's, step by step, and scalers that are wrong in other ways than the known ones."""

from __future__ import annotations

import math
import random

import pytest
import torch

from tests.sampling import few

SEQUENCES, STEPS = 1000, 12


def driven(scaler, script):
    """(scale, weights) after each step of a script of gradients, which pass through fp16."""
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    path = []
    for gradient, unscales in script:
        factor = float(scaler.scale(torch.tensor(1.0)))
        weight.grad = (torch.tensor(gradient, dtype=torch.float64) * factor).half().float()
        if unscales:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        path.append((float(scaler.scale(torch.tensor(1.0))), weight.detach().tolist()))
    return path


def scripted(rng):
    kinds = [rng.choice([0, 0, 0, 0, math.inf, math.nan, 3e5]) for _ in range(STEPS)]
    return [([2.0 ** rng.uniform(-14, -2), kind or 2.0 ** rng.uniform(-14, -2)], rng.random() < 0.3) for kind in kinds]


@pytest.mark.slow
def test_the_solution_and_torch_agree_on_a_thousand_sequences(solution):
    rng = random.Random(7)
    for _ in range(SEQUENCES):
        settings = {
            "init_scale": 2.0 ** rng.randint(4, 20),
            "growth_factor": rng.choice([2.0, 4.0]),
            "backoff_factor": rng.choice([0.5, 0.25]),
            "growth_interval": rng.randint(1, 4),
        }
        script = scripted(rng)

        expected = driven(torch.amp.GradScaler("cpu", **settings), script)

        assert expected == driven(solution["LossScaler"](**settings), script)


TORCHS = (0, "your LossScaler is torch's GradScaler")
UNSCALED = (
    0,
    "torch's operator _amp_foreach_non_finite_check_and_unscale_ was called "
    "to unscale the gradients and to look for infinity and NaN",
)


class Delegating:
    """A scaler of one's own, in which torch's works; only the limit is not torch's."""

    def __init__(self, *, max_scale, **settings):
        self.inner, self.limit = torch.amp.GradScaler("cpu", **settings), max_scale

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def update(self):
        self.inner.update()
        if self.inner.get_scale() > self.limit:
            self.inner.update(float(self.limit))


def test_torchs_scaler_inside_of_another_class_is_refused(judged):
    outcome = judged("dynamic_scale", LossScaler=Delegating)

    assert UNSCALED == (outcome.points, outcome.what)
    assert "part of torch's GradScaler" in outcome.why


def unscales_with_torchs(self, optimizer):
    if self.is_unscaled:
        raise RuntimeError("twice")
    self.is_unscaled, found = True, torch.zeros(1)
    gradients = [weight.grad for weight in weights_of(optimizer) if weight.grad is not None]
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.tensor([1 / self.current]))
    self.has_overflow = bool(found)


def updates_with_torchs(self):
    scale, count = torch.tensor([float(self.current)]), torch.zeros(1, dtype=torch.int32)
    torch._amp_update_scale_(scale, count, torch.zeros(1), self.growth_factor, self.backoff_factor, 2)
    self.current, self.is_unscaled, self.has_overflow = float(scale), False, False


def hiding(method):
    """The method, with what it raises of torch's operators caught."""

    def hidden(self, *given):
        try:
            method(self, *given)
        except RuntimeError:
            raise
        except Exception:
            self.is_unscaled = self.has_overflow = False

    return hidden


@pytest.mark.parametrize("wrapped", [lambda method: method, hiding], ids=["raised", "caught"])
def test_torchs_operators_in_a_class_of_ones_own_are_named(judged, solution, wrapped):
    unscaled = judged("dynamic_scale", LossScaler=changed(solution, unscale_=wrapped(unscales_with_torchs)))
    updated = judged("dynamic_scale", LossScaler=changed(solution, update=wrapped(updates_with_torchs)))

    assert UNSCALED == (unscaled.points, unscaled.what)
    assert unscaled.next.endswith("with operators such as torch.isfinite")
    assert (0, "torch's operator _amp_update_scale_ was called to change the scale") == (
        updated.points,
        updated.what,
    )
    assert updated.next.startswith("count clean steps yourself")


def test_torchs_own_scaler_is_refused_by_any_name(judged, monkeypatch):
    class LossScaler(torch.amp.GradScaler):
        def __init__(self, *, max_scale, **settings):
            super().__init__("cpu", **settings)
            monkeypatch.setattr(torch.amp, "GradScaler", dict)

    outcome = judged("dynamic_scale", LossScaler=LossScaler)

    assert TORCHS == (outcome.points, outcome.what)


def test_weights_that_are_put_back_after_a_bad_step_are_no_skipped_step(judged, solution):
    def step(self, optimizer):
        if not self.is_unscaled:
            self.unscale_(optimizer)
        before = [one.detach().clone() for one in weights_of(optimizer)]
        optimizer.step()
        if self.has_overflow:
            for one, old in zip(weights_of(optimizer), before, strict=True):
                one.data.copy_(old)

    outcome = judged("dynamic_scale", LossScaler=changed(solution, step=step))

    put_back = "your scaler calls optimizer.step() with infinity or NaN in a gradient, and then restores the weights"
    assert (0, put_back) == (outcome.points, outcome.what)
    assert "(with " in outcome.why
    assert outcome.next.startswith("look at the gradients before optimizer.step()")


def test_nan_of_the_scalers_own_is_told_as_what_is_seen(judged, solution):
    def unscale_(self, optimizer):
        solution["LossScaler"].unscale_(self, optimizer)
        if not self.has_overflow:
            for weight in weights_of(optimizer):
                if weight.grad is not None:
                    weight.grad.mul_(math.nan)

    outcome = judged("dynamic_scale", LossScaler=changed(solution, unscale_=unscale_))

    assert (0, "weights became NaN in a step whose true gradients are finite") == (outcome.points, outcome.what)
    assert "step 1 (clean" in outcome.why
    assert "put the weights back" not in outcome.next
    assert "remembers" not in outcome.next


def changed(solution, **methods):
    return type("LossScaler", (solution["LossScaler"],), methods)


def grows_one_step_late(self):
    self.clean_in_a_row = 0 if self.has_overflow else self.clean_in_a_row + 1
    if self.has_overflow:
        self.current *= self.backoff_factor
    elif self.clean_in_a_row > self.growth_interval:
        self.current, self.clean_in_a_row = self.current * self.growth_factor, 0
    self.is_unscaled = self.has_overflow = False


def backs_off_without_measure(self):
    self.clean_in_a_row = 0 if self.has_overflow else self.clean_in_a_row + 1
    if self.has_overflow:
        self.current = 1.0
    elif self.clean_in_a_row == self.growth_interval:
        self.current, self.clean_in_a_row = self.current * self.growth_factor, 0
    self.is_unscaled = self.has_overflow = False


def forgets_nothing(self):
    if self.has_overflow:
        self.current *= self.backoff_factor
    self.is_unscaled = False


def steps_without_unscaling(self, optimizer):
    if not self.has_overflow:
        optimizer.step()


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        ({"update": grows_one_step_late}, "your scale did not grow when it should have"),
        ({"update": backs_off_without_measure}, "your scale backed off by the wrong factor"),
        ({"update": forgets_nothing}, "your scaler skips a clean step"),
        ({"step": steps_without_unscaling}, "the weights moved by scaled gradients"),
        ({"step": lambda self, optimizer: None}, "your scaler skips a clean step"),
        ({"unscale_": lambda self, optimizer: None}, ""),
        ({"scale": lambda self, loss: loss}, ""),
        ({"scale": lambda self, loss: math.nan}, ""),
        ({"update": lambda self: None}, ""),
    ],
)
@pytest.mark.parametrize("seed", few([1, 2], quick=1))
def test_other_wrong_scalers_lose_and_are_told_why(judged, solution, methods, told, seed):
    outcome = judged("dynamic_scale", seed=seed, LossScaler=changed(solution, **methods))

    assert 0 == outcome.points
    assert told in outcome.what


def weights_of(optimizer):
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def unscales_out_of_place(self, optimizer):
    if self.is_unscaled:
        raise RuntimeError("twice")
    self.is_unscaled = True
    for weight in weights_of(optimizer):
        if weight.grad is not None:
            weight.grad = weight.grad / self.current
            self.has_overflow |= not bool(torch.isfinite(weight.grad).all())


def test_gradients_are_unscaled_in_place(judged, solution):
    outcome = judged("dynamic_scale", LossScaler=changed(solution, unscale_=unscales_out_of_place))

    assert "unscale_ replaces the gradients" in outcome.what


def sees_only_infinity(self, optimizer):
    if self.is_unscaled:
        raise RuntimeError("twice")
    self.is_unscaled = True
    for weight in weights_of(optimizer):
        if weight.grad is not None:
            weight.grad.div_(self.current)
            self.has_overflow |= bool(torch.isinf(weight.grad).any())


def test_a_scaler_that_does_not_see_nan_is_told_of_nan(judged, solution):
    outcome = judged("dynamic_scale", LossScaler=changed(solution, unscale_=sees_only_infinity))

    assert "reach the weights" in outcome.what
    assert "(with NaN" in outcome.why
    assert outcome.next.startswith("NaN is not infinite")


def test_a_second_unscale_that_passes_is_told(judged, solution):
    def unscale_once(self, optimizer):
        if not self.is_unscaled:
            solution["LossScaler"].unscale_(self, optimizer)

    outcome = judged("dynamic_scale", LossScaler=changed(solution, unscale_=unscale_once))

    assert "your scaler does not refuse a second unscale_ in one step" == outcome.what
    assert "did not raise RuntimeError" in outcome.why
