"""The shared look leaves matplotlib as it found it, but for what a backend turns on when it is loaded."""

from __future__ import annotations

import matplotlib as mpl
import pytest

from edl_labs.plots import style


@pytest.fixture(autouse=True)
def quiet_figures():
    mpl.use("Agg")
    yield
    mpl.interactive(False)


def test_the_look_ends_with_its_context():
    before = mpl.rcParams["text.color"]
    with style.look():
        inside = mpl.rcParams["text.color"]

    assert (style.TEXT, before) == (inside, mpl.rcParams["text.color"])


def test_interactive_mode_that_began_inside_goes_on_so_that_later_pictures_appear():
    mpl.interactive(False)
    with style.look():
        mpl.interactive(True)

    assert mpl.is_interactive()
