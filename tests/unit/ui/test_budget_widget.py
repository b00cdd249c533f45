"""The budget explorer: placements first, then a still picture for pages, and a slider where there is a kernel."""

from __future__ import annotations

import base64

import pytest

from edl_labs.ui.budget_widget import SHARES, BudgetExplorer
from edl_labs.virtual.memory import Tape


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


@pytest.fixture
def explorer() -> BudgetExplorer:
    return BudgetExplorer(Tape.chain(6, activation_bytes=9, output_bytes=2, forward_s=1.0, backward_s=2.0))


def test_a_smaller_budget_costs_time_and_is_kept(explorer):
    found = {share: explorer.placement(share) for share in (1.0, 0.75, 0.5)}

    assert all(found[share].replay.peak_bytes <= explorer.budget_bytes(share) for share in found)
    assert 18.0 == found[1.0].replay.makespan_s < found[0.75].replay.makespan_s < found[0.5].replay.makespan_s


def test_a_budget_that_nothing_fits_is_said(explorer):
    assert explorer.placement(0.1) is None
    assert "no placement" in explorer.describe(0.1, None)


def test_the_text_has_a_line_for_each_budget(explorer):
    assert len(SHARES) + 1 == len(repr(explorer).splitlines())


@pytest.mark.slow  # draws three pictures, twice
def test_a_picture_stands_in_for_the_slider(explorer):
    bundle, told = explorer._repr_mimebundle_()

    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert "100 % of it" in told["image/png"]["alt"]


@pytest.mark.slow  # draws twice
def test_the_slider_redraws_the_picture_and_its_text(explorer):
    box = explorer.widget()
    slider, picture = box.children
    before = picture.value, picture.tooltip
    slider.value = 50

    assert before != (picture.value, picture.tooltip)
    assert picture.tooltip.startswith("50 % of it")
