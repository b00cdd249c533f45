"""mend_accumulation: honest trainings have all points in every order of their calls; forged counters have none."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab06_memory.micro_batches import IGNORED
from edl_labs.numerics import SavedTensors

TRAININGS = """
import torch

def summed(model, inputs, labels):
    return torch.nn.functional.cross_entropy(model(inputs), labels, ignore_index=IGNORED, reduction="sum")

def windows(batches, window):
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        yield part, sum(int((labels != IGNORED).sum()) for _, labels in part)

def cleared_before_backward(model, batches, optimizer, *, window):
    losses = []
    for part, counted in windows(batches, window):
        total = 0.0
        for at, (inputs, labels) in enumerate(part):
            loss = summed(model, inputs, labels) / counted
            if at == 0:
                optimizer.zero_grad(set_to_none=False)
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses

def divided_at_the_end(model, batches, optimizer, *, window):
    losses = []
    for part, counted in windows(batches, window):
        model.zero_grad()
        total = 0.0
        for inputs, labels in part:
            loss = summed(model, inputs, labels)
            loss.backward()
            total += loss.item()
        for one in model.parameters():
            one.grad /= counted
        optimizer.step()
        losses.append(total / counted)
    return losses

def skips_what_does_not_count(model, batches, optimizer, *, window):
    losses = []
    for part, counted in windows(batches, window):
        optimizer.zero_grad()
        total = 0.0
        for inputs, labels in part:
            loss = summed(model, inputs, labels) / counted
            if (labels != IGNORED).any():
                loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses

def at_once(model, batches, optimizer, *, window):
    losses = []
    for part, counted in windows(batches, window):
        optimizer.zero_grad()
        loss = summed(model, torch.cat([one for one, _ in part]), torch.cat([one for _, one in part])) / counted
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.rows[:] = [len(labels) for _, labels in batches]
    return losses

def graphs_held(model, batches, optimizer, *, window):
    losses = []
    for part, counted in windows(batches, window):
        optimizer.zero_grad()
        loss = sum(summed(model, inputs, labels) for inputs, labels in part) / counted
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
"""


@pytest.fixture(scope="module")
def trainings() -> dict:
    names = {"IGNORED": IGNORED}
    exec(TRAININGS, names)
    return names


@pytest.mark.parametrize("name", ["cleared_before_backward", "divided_at_the_end", "skips_what_does_not_count"])
@pytest.mark.parametrize("seed", [1, 2])
def test_honest_trainings_have_all_points(judged, trainings, name, seed):
    found = judged("mend_accumulation", train_accumulated=trainings[name], seed=seed)

    assert 1.0 == found.points, (found.what, found.why)


@pytest.mark.parametrize("name", ["at_once", "graphs_held"])
def test_forged_counters_have_no_points(judged, trainings, monkeypatch, name):
    # A student's code can make the recorder say that nothing is held.
    monkeypatch.setattr(SavedTensors, "peak_count", property(lambda _: 0, lambda _, __: None), raising=False)
    found = judged("mend_accumulation", train_accumulated=trainings[name])

    assert (0.0, "your weights do not follow from these micro-batches") == (found.points, found.what)
