"""The serving explorer: runs first, then a still picture for pages, and sliders where there is a kernel."""

from __future__ import annotations

import base64

import pytest

from edl_labs.errors import UsageError
from edl_labs.ui.serving_widget import ServingExplorer
from edl_labs.virtual.server import ServerMachine
from tests.unit.virtual.server.test_virtual_server import admit_all


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


@pytest.fixture
def explorer() -> ServingExplorer:
    return ServingExplorer(ServerMachine(step_s=5e-3, blocks=4000), admit_all, count=12, answer=20, rate=2.0)


def test_more_requests_a_second_wait_longer_and_more_at_a_time_wait_less(explorer):
    calm, few, busy = (
        explorer.run(*one).time_to_first_token_s(0.99) for one in ((1, 256, 200), (40, 1, 200), (40, 256, 200))
    )

    assert calm <= busy < few


def test_longer_prompts_take_longer(explorer):
    assert explorer.run(2.0, 8, 100).busy_s < explorer.run(2.0, 8, 1600).busy_s


def test_the_text_has_a_line_for_each_setting_and_says_what_never_ends(explorer):
    assert 1 + len(explorer.settings()) == len(repr(explorer).splitlines())
    assert "12 of 12 requests never finish" in ServingExplorer(ServerMachine(), lambda server: None, count=12).describe(
        1.0, 8, 200
    )


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": 4000}, {"answer": 0}, {"rate": 0.0}])
def test_loads_that_cannot_be_redrawn_are_refused(wrong):
    with pytest.raises(UsageError, match="requests of at least 1 token"):
        ServingExplorer(ServerMachine(), admit_all, **wrong)


@pytest.mark.slow  # draws three pictures
def test_a_picture_stands_in_for_the_sliders(explorer):
    bundle = explorer._repr_mimebundle_()[0]

    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")


@pytest.mark.slow  # draws some pictures
def test_the_sliders_redraw_the_picture(explorer):
    *sliders, picture = explorer.widget().children
    before = (picture.value, picture.tooltip)
    sliders[1].value = 1

    assert before != (picture.value, picture.tooltip)
