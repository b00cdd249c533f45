"""No part of the project is more than 5 % above its budget in tools/size_budgets.toml."""

from __future__ import annotations

from tools.size_budgets import above, budgets, sizes


def test_no_part_is_above_its_budget() -> None:
    assert [] == above(sizes(), budgets())


def test_a_part_without_a_budget_and_a_budget_without_a_part_are_found() -> None:
    assert ["new has a size and no budget"] == above({"new": 1}, {})
    assert ["old has a budget and no size"] == above({}, {"old": 1})
