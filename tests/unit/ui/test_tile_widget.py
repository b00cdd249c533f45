"""The tile explorer: counts first, then a still picture for pages, and sliders where there is a kernel."""

from __future__ import annotations

import base64

import pytest

from edl_labs.errors import UsageError
from edl_labs.ui.tile_widget import TILES, TileExplorer


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


def test_reads_are_counted_for_ragged_tiles():
    explorer = TileExplorer(m=100, n=70, k=10)

    assert 2 * 2 == explorer.programs(64, 64)
    assert 10 * (100 * 2 + 70 * 2) == explorer.read_elements(64, 64)
    assert 10 * (100 * 1 + 70 * 4) == explorer.read_elements(32, 128)


def test_text_and_picture_stand_in_for_the_sliders():
    bundle, about = TileExplorer()._repr_mimebundle_()

    assert " ".join(bundle["text/plain"].split()) == about["image/png"]["alt"]
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert len(TILES) + 1 == len(bundle["text/plain"].splitlines())


def test_a_slider_redraws_the_picture_and_programs_stay_within_the_grid():
    box = TileExplorer().widget()
    bm, _, program, picture = box.children
    program.value = program.max
    before = picture.value
    bm.value = 128

    assert TileExplorer().programs(128, 64) - 1 == program.max == program.value
    assert before != picture.value


def test_a_product_that_no_picture_holds_is_refused():
    with pytest.raises(UsageError, match="m = 4096"):
        TileExplorer(m=4096, n=4096, k=64)
