"""What was lent and came back changed is named, however deep the change is."""

from __future__ import annotations

import pytest
import torch

from edl_labs.errors import Wrong
from edl_labs.exercises.lent_inputs import Lent, judge_lent


def test_an_untouched_input_and_a_copy_that_is_changed_are_fine():
    lent, own = Lent(), torch.ones(2, 3)

    handed = lent("weight", own)
    handed.clone().mul_(2)

    assert [] == lent.changed()
    assert handed is not own
    judge_lent(lent.changed())


@pytest.mark.parametrize(
    "change",
    [
        lambda layers: layers.pop(),
        lambda layers: layers[0]["weight"].mul_(2),
        lambda layers: layers[0].update(weight=layers[0]["weight"].float()),
        lambda layers: layers[0].update(bias=torch.zeros(2)),
        lambda layers: layers[0]["weight"].resize_(2),
        lambda layers: layers[0].pop("bias"),
    ],
)
def test_a_change_anywhere_inside_is_seen(change):
    lent = Lent()
    layers = lent("layers", [{"weight": torch.ones(2, 2, dtype=torch.float64), "bias": None}, {"kind": "relu"}])

    change(layers)

    assert ["layers"] == lent.changed()


def test_an_expanded_tensor_can_be_changed_like_any_other_and_that_is_seen():
    lent = Lent()

    lent("k", torch.ones(2).expand(3, 2)).mul_(2)

    assert ["k"] == lent.changed()


def test_each_name_is_told_once():
    lent = Lent()
    for _ in range(2):
        lent("x", [1, 2]).clear()
    lent("y", {"a": 1})["a"] = 2

    with pytest.raises(Wrong, match="has been changed") as told:
        judge_lent(lent.changed())

    assert "x and y are no longer" in told.value.why
