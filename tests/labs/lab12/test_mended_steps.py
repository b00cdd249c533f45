"""mend_the_step: a record whose steps were moved, and costs under another name, earn nothing for them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch


@pytest.fixture(scope="module")
def slow(solution) -> dict[str, Any]:
    """SlowTraining with lists of tensors, which leaves four of five costs."""

    class Training(solution["SlowTraining"]):
        def step(self, text):
            logits, following = self.logits(text[:, :-1]), text[:, 1:].flatten()
            loss = solution["F"].cross_entropy(logits, following)
            self.optimizer.zero_grad()
            loss.backward()
            solution["nn"].utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.optimizer.step()
            accuracy = (logits.argmax(1) == following).float().mean()
            if len(self.losses) % 3 == 0:
                self.accuracies.append(accuracy)
            self.losses.append(loss.detach())

    return {"Training": Training}


def steps_of_the_record() -> list[Any]:
    """The steps of the program that is being recorded, found on the stack."""
    frame = sys._getframe()
    while "recorder" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["recorder"]._program.steps


def moved_to_the_end(steps: list[Any]) -> list[Any]:
    """All sections after all operators, with one operator left in step 3."""
    sections = [one for one in steps if one[0] == "section"]
    rest = [one for one in steps if one[0] != "section"]
    return [*rest, *sections[:4], ["ones.default", [[1]], {}, [400_000], None], ["end", 400_000], *sections[4:]]


def moved_to_the_start(steps: list[Any]) -> list[Any]:
    """All sections before all operators, which come after the last step."""
    return list(reversed(moved_to_the_end(list(reversed(steps)))))


@pytest.mark.parametrize("moved", [moved_to_the_end, moved_to_the_start])
def test_a_record_whose_sections_were_moved_earns_no_point_for_costs_that_are_left(judged, slow, moved):
    class Training(slow["Training"]):
        def step(self, text):
            super().step(text)
            if len(self.losses) == 6:
                steps = steps_of_the_record()
                steps[:] = moved(steps)

    honest, lying = judged("mend_the_step", **slow), judged("mend_the_step", Training=Training)

    assert 0.2 == pytest.approx(honest.points)
    assert lying.points <= honest.points


class AdamByHand:
    """AdamW with products and sums alone, one parameter after the other."""

    def __init__(self, parameters):
        self.parameters, self.count = list(parameters), 0
        self.averages = [(one.detach() * 0, one.detach() * 0) for one in self.parameters]

    def zero_grad(self):
        for one in self.parameters:
            one.grad = None

    def step(self):
        self.count += 1
        for one, (mean, square) in zip(self.parameters, self.averages, strict=True):
            mean.mul_(0.9).add_(one.grad * 0.1)
            square.mul_(0.999).add_(one.grad * one.grad * 0.001)
            root = (square / (1 - 0.999**self.count)).sqrt() + 1e-8
            one.data.mul_(1 - 1e-4).sub_(0.01 * (mean / (1 - 0.9**self.count)) / root)


def test_an_optimizer_by_hand_that_takes_parameters_one_by_one_is_no_fused_one(judged, solution):
    class Training(solution["Training"]):
        def __init__(self, model):
            super().__init__(model)
            self.optimizer = AdamByHand(model.parameters())

    outcome = judged("mend_the_step", Training=Training)

    assert (0.8, "Your optimizer updates each parameter separately.") == (outcome.points, outcome.what)


class RenamedAdam(AdamByHand):
    """The same, with no operator that only an optimizer has."""

    def step(self):
        self.count += 1
        for one, (mean, square) in zip(self.parameters, self.averages, strict=True):
            mean.mul_(0.9).add_(one.grad * 0.1)
            square.mul_(0.999).add_(one.grad * one.grad * 0.001)
            root = (square / (1 - 0.999**self.count)).pow(0.5) + 1e-8
            one.data.mul_(1 - 1e-4).sub_(0.01 * (mean / (1 - 0.9**self.count)) / root)


def renamed_optimizer(solution):
    class Training(solution["Training"]):
        def __init__(self, model):
            super().__init__(model)
            self.optimizer = RenamedAdam(model.parameters())

    return Training


def attending(solution, attend):
    class Training(solution["Training"]):
        def attend(self, qkv):
            q, k, v = qkv.unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            return attend(q / q.shape[3] ** 0.5, k, v).transpose(1, 2).flatten(2)

    return Training


def scores_in_the_middle(solution):
    def attend(q, k, v):
        scores = (q[:, :, :, None] * k[:, :, None]).sum(-1, keepdim=True)
        later = torch.full((q.shape[2],) * 2, -torch.inf).triu(1)[:, :, None]
        return ((scores + later).softmax(3) * v[:, :, None]).sum(3)

    return attending(solution, attend)


def scores_with_one_more(solution):
    def attend(q, k, v):
        k, v = (torch.nn.functional.pad(one, (0, 0, 0, 1)) for one in (k, v))
        later = torch.full((q.shape[2], k.shape[2]), -torch.inf).triu(1)
        return (q @ k.transpose(2, 3) + later).softmax(3) @ v

    return attending(solution, attend)


def scores_in_one_row(solution):
    def attend(q, k, v):
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k).flatten(2)
        later = torch.full((q.shape[2],) * 2, -torch.inf).triu(1).flatten()
        return (scores + later).unflatten(2, (q.shape[2], -1)).softmax(3) @ v

    return attending(solution, attend)


def with_steps(solution, positions=lambda self: self.positions, extra=lambda self, logits, following: None):
    class Training(solution["Training"]):
        def step(self, text):
            x, following = self.model.embedding(text[:, :-1]), text[:, 1:].flatten()
            for block, where in zip(self.model.blocks, [positions(self)] * len(self.model.blocks), strict=True):
                x = block(x + where, self.attend)
            logits = self.model.head(x).flatten(0, 1)
            loss = solution["F"].cross_entropy(logits, following)
            self.optimizer.zero_grad()
            loss.backward()
            solution["nn"].utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.optimizer.step()
            kept = extra(self, logits.detach(), following)
            if len(self.losses) % 3 == 0:
                kept = (logits.argmax(1) == following).float().mean() if kept is None else (kept + 0) * 1
                self.accuracies.append(kept)
            self.losses.append(loss.detach())

    return Training


def copied_positions(solution):
    return with_steps(solution, positions=lambda self: torch.empty_like(self.positions).copy_(self.model.positions))


def added_positions(solution):
    return with_steps(solution, positions=lambda self: torch.zeros_like(self.positions).add_(self.model.positions))


def summed_positions(solution):
    return with_steps(solution, positions=lambda self: self.model.positions[None].sum(0, dtype=torch.float32))


def renamed_metric(solution):
    def accuracy(self, logits, following):
        return ((logits.gather(1, following[:, None])[:, 0] - logits.amax(1)).sign() + 1).mean()

    return with_steps(solution, extra=accuracy)


def shown_loss(solution):
    return with_steps(solution, extra=lambda self, logits, following: repr(logits[0]) and None)


def counted_loss(solution):
    return with_steps(solution, extra=lambda self, logits, following: len(logits.nonzero()) < 0 or None)


@pytest.mark.parametrize(
    ("training", "what"),
    [
        (renamed_optimizer, "Your optimizer updates each parameter separately."),
        (scores_in_the_middle, "Your step stores a number for each pair of positions."),
        (scores_with_one_more, "Your step stores a number for each pair of positions."),
        (scores_in_one_row, "Your step stores a number for each pair of positions."),
        (copied_positions, "Your step converts tensors to another dtype."),
        (added_positions, "Your step converts tensors to another dtype."),
        (summed_positions, "Your step converts tensors to another dtype."),
        (renamed_metric, "Your code computes the accuracy in every step."),
        (shown_loss, "In your step, the host reads a value."),
        (counted_loss, "In your step, the host reads a value."),
    ],
)
def test_a_cost_by_other_operators_is_the_same_cost(judged, solution, training, what):
    outcome = judged("mend_the_step", Training=training(solution))

    assert (pytest.approx(0.8), what) == (outcome.points, outcome.what), outcome.why


def test_a_mask_with_a_comparison_is_not_taken_for_the_metric(judged, solution):
    def attend(q, k, v):
        at = torch.arange(q.shape[2])
        return (q @ k.transpose(2, 3)).masked_fill(~(at[:, None] >= at), -torch.inf).softmax(3) @ v

    outcome = judged("mend_the_step", Training=attending(solution, attend))

    assert "other costs" not in outcome.why
    assert (pytest.approx(0.8), "Your step stores a number for each pair of positions.") == (
        outcome.points,
        outcome.what,
    )


class FlatAdam(AdamByHand):
    """AdamW by hand on one row of all parameters: a few kernels, however many parameters there are."""

    def __init__(self, parameters):
        super().__init__(parameters)
        self.row = torch.cat([one.detach().flatten() for one in self.parameters])
        self.averages = [(self.row * 0, self.row * 0)]

    def step(self):
        of_all = torch.cat([one.grad.flatten() for one in self.parameters])
        ((mean, square),) = self.averages
        self.count += 1
        mean.mul_(0.9).add_(of_all * 0.1)
        square.mul_(0.999).add_(of_all * of_all * 0.001)
        root = (square / (1 - 0.999**self.count)).sqrt() + 1e-8
        self.row.mul_(1 - 1e-4).sub_(0.01 * (mean / (1 - 0.9**self.count)) / root)
        parts = self.row.split([one.numel() for one in self.parameters])
        shapes = [part.view_as(one) for part, one in zip(parts, self.parameters, strict=True)]
        torch._foreach_copy_([one.data for one in self.parameters], shapes)


def test_an_optimizer_by_hand_on_one_row_is_a_fused_one(judged, solution):
    class Training(solution["Training"]):
        def __init__(self, model):
            super().__init__(model)
            self.optimizer = FlatAdam(model.parameters())

    assert 1 == judged("mend_the_step", Training=Training).points


@pytest.mark.parametrize("seed", [2, 6, 83])
@pytest.mark.parametrize("optimizer", [None, FlatAdam])
def test_sizes_that_hold_the_tokens_twice_by_chance_are_no_mask(judged, solution, seed, optimizer):
    class Training(solution["Training"]):
        def __init__(self, model):
            super().__init__(model)
            self.optimizer = self.optimizer if optimizer is None else optimizer(model.parameters())

    outcome = judged("mend_the_step", seed=seed, Training=Training)

    assert 1 == outcome.points, outcome.why


@pytest.mark.parametrize("seed", [2, 6, 83])
@pytest.mark.parametrize("training", [scores_in_the_middle, scores_with_one_more, scores_in_one_row])
def test_scores_are_a_mask_where_other_sizes_hold_the_tokens_as_well(judged, solution, seed, training):
    outcome = judged("mend_the_step", seed=seed, Training=training(solution))

    assert (pytest.approx(0.8), "Your step stores a number for each pair of positions.") == (
        outcome.points,
        outcome.what,
    )


def gradients_set_to_0(solution, clear, *, at_end):
    class Training(solution["Training"]):
        def step(self, text):
            x, following = self.model.embedding(text[:, :-1]), text[:, 1:].flatten()
            for block in self.model.blocks:
                x = block(x + self.positions, self.attend)
            logits = self.model.head(x).flatten(0, 1)
            loss = solution["F"].cross_entropy(logits, following)
            if not at_end:
                clear(self)
            loss.backward()
            solution["nn"].utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.optimizer.step()
            if at_end:
                clear(self)
            if len(self.losses) % 3 == 0:
                self.accuracies.append((logits.argmax(1) == following).float().mean())
            self.losses.append(loss.detach())

    return Training


def new_zeros(training):
    for one in training.model.parameters():
        one.grad = torch.zeros_like(one)


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize(
    "clear",
    [
        lambda self: self.optimizer.zero_grad(set_to_none=False),
        lambda self: self.model.zero_grad(set_to_none=False),
        new_zeros,
    ],
)
def test_gradients_that_are_added_to_zeros_are_no_updates_and_no_waste(judged, solution, clear, at_end):
    outcome = judged("mend_the_step", Training=gradients_set_to_0(solution, clear, at_end=at_end))

    assert 1 == outcome.points, (outcome.what, outcome.why)


def test_averages_of_an_optimizer_by_hand_that_are_made_of_zeros_are_kept_all_the_same(judged, solution):
    class Anew(RenamedAdam):
        def step(self):
            self.averages = [tuple(torch.zeros_like(one).add_(one) for one in both) for both in self.averages]
            super().step()

    class Training(solution["Training"]):
        def __init__(self, model):
            super().__init__(model)
            self.optimizer = Anew(model.parameters())

    outcome = judged("mend_the_step", Training=Training)

    assert (0.8, "Your optimizer updates each parameter separately.") == (outcome.points, outcome.what)


def running_mean(self, logits, following):
    self.mean = 0.9 * getattr(self, "mean", 0) + 0.1 * logits.logsumexp(1).mean()


def watched_logits(self, logits, following):
    self.largest = logits.max() + 0.0


def checked_words(self, logits, following):
    self.is_right = following.max() < 50


@pytest.mark.parametrize("extra", [running_mean, watched_logits, checked_words])
def test_kernels_without_a_use_are_not_called_the_accuracy(judged, solution, extra):
    outcome = judged("mend_the_step", Training=with_steps(solution, extra=extra))

    assert (pytest.approx(0.8), "Your step computes values that are never used.") == (outcome.points, outcome.what), (
        outcome.why
    )


def test_an_accuracy_of_one_spare_step_is_not_in_every_step(judged, solution):
    def of_step_4(self, logits, following):
        if len(self.losses) == 4:
            self.last = (logits.argmax(1) == following).float().mean()

    outcome = judged("mend_the_step", Training=with_steps(solution, extra=of_step_4))

    assert (pytest.approx(0.8), "Your code computes the accuracy in too many steps.") == (outcome.points, outcome.what)
    assert "step 4 compares" in outcome.why


def loss_by_hand(solution, *, keep, extra=lambda best, following: None):
    class Training(solution["Training"]):
        def step(self, text):
            x, following = self.model.embedding(text[:, :-1]), text[:, 1:].flatten()
            for block in self.model.blocks:
                x = block(x + self.positions, self.attend)
            logits = self.model.head(x).flatten(0, 1)
            most, best = logits.max(1)
            sums = most + (logits - most[:, None]).exp().sum(1).log()
            loss = (sums - logits.gather(1, following[:, None])[:, 0]).mean()
            self.optimizer.zero_grad()
            loss.backward()
            solution["nn"].utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.optimizer.step()
            extra(best, following)
            if len(self.losses) % 3 == 0:
                self.accuracies.append((best == following).float().mean())
            self.losses.append(keep(loss))

    return Training


def test_the_maximum_of_a_loss_by_hand_is_not_the_accuracy(judged, solution):
    honest = judged("mend_the_step", Training=loss_by_hand(solution, keep=torch.Tensor.detach))
    reading = judged("mend_the_step", Training=loss_by_hand(solution, keep=torch.Tensor.item))

    assert 1 == honest.points, (honest.what, honest.why)
    assert (pytest.approx(0.8), "In your step, the host reads a value.") == (reading.points, reading.what), reading.why
    assert "other costs" not in reading.why


def test_an_accuracy_by_the_maximum_of_a_loss_by_hand_is_the_accuracy(judged, solution):
    def also(best, following):
        (best == following).float().mean()

    outcome = judged("mend_the_step", Training=loss_by_hand(solution, keep=torch.Tensor.detach, extra=also))

    assert (pytest.approx(0.8), "Your code computes the accuracy in every step.") == (outcome.points, outcome.what)
