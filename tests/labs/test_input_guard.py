"""What was guard and came back changed is named, however deep the change is."""

from __future__ import annotations

import pytest
import torch

from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, asked_twice, explained_by_changes


def test_an_untouched_input_and_a_copy_that_is_changed_are_fine():
    guard, own = InputGuard(), torch.ones(2, 3)

    handed = guard("weight", own)
    handed.clone().mul_(2)

    assert [] == guard.changed()
    assert handed is not own


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
    guard = InputGuard()
    layers = guard("layers", [{"weight": torch.ones(2, 2, dtype=torch.float64), "bias": None}, {"kind": "relu"}])

    change(layers)

    assert ["layers"] == guard.changed()


def test_an_expanded_tensor_can_be_changed_like_any_other_and_that_is_seen():
    guard = InputGuard()

    guard("k", torch.ones(2).expand(3, 2)).mul_(2)

    assert ["k"] == guard.changed()


def test_a_function_that_modifies_its_input_gives_something_else_the_second_time():
    def total(values):
        values[0] += 1
        return sum(values)

    assert (5, ["values"]) == asked_twice(lambda guard: total(guard("values", [1, 2])))
    assert (3, []) == asked_twice(lambda guard: sum(guard("values", [1, 2])))


def test_a_wrong_result_is_explained_by_the_inputs_that_were_modified():
    with pytest.raises(Wrong, match="modified its input") as told, explained_by_changes(["x", "y"]):
        raise Wrong("another result", why="", next="")

    assert "x and y" in told.value.why
    with pytest.raises(Wrong, match="another result"), explained_by_changes([]):
        raise Wrong("another result", why="", next="")
    with explained_by_changes(["x"]):  # a right result: what the process says of its inputs costs nothing
        pass


def test_each_name_is_listed_once():
    guard = InputGuard()
    for _ in range(2):
        guard("x", [1, 2]).clear()
    guard("y", {"a": 1})["a"] = 2

    assert ["x", "y"] == guard.changed()
