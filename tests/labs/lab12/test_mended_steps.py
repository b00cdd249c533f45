"""mend_the_step: a record whose steps were moved, and costs under another name, earn nothing for them."""

from __future__ import annotations

import sys
from typing import Any

import pytest


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

    assert (0.8, "Every parameter is updated separately.") == (outcome.points, outcome.what)
