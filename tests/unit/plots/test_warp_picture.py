"""The picture of a warp's accesses: a row for each place in the kernel, sectors used and wasted, banks in conflict."""

from __future__ import annotations

import pytest

from edl_labs.plots.style import TEXT
from edl_labs.virtual.warp import VirtualWarp

pytest.importorskip("matplotlib").use("Agg")


def scattered(cuda, src):
    tile = cuda.shared.array((32, 32))
    tile[cuda.threadIdx.x, 0] = src[32 * cuda.threadIdx.x]
    src[cuda.threadIdx.x + 1]


def drawn():
    from edl_labs.plots.style import subplots

    gpu = VirtualWarp()
    gpu.launch(scattered, gpu.array("src", 1024), grid=1, block=64 // 2)
    return gpu.replay().plot(subplots()[1])


def test_every_place_of_the_kernel_is_a_row_with_what_it_costs():
    rows = [label.get_text() for label in drawn().get_yticklabels()]

    assert [
        "line 3: load src\nsectors 32, best 4",
        "line 3: store shared0\nwavefronts 32, best 1",
        "line 4: load src\nsectors 5, best 4",
    ] == rows


def test_a_bank_says_how_many_words_are_asked_of_it():
    assert ["32"] == [text.get_text() for text in drawn().texts]


def test_colours_are_named_and_hatched_apart():
    axes = drawn()
    handles, names = axes.get_legend_handles_labels()

    assert ["bytes used (height: their share of each sector)", "bytes moved but not used", "bank conflict"] == names
    assert 3 == len({handle.patches[0].get_hatch() or "" for handle in handles})


def test_names_of_colours_are_read_on_light_and_dark():
    from matplotlib.colors import to_hex

    assert {TEXT} == {to_hex(text.get_color()) for text in drawn().get_legend().get_texts()}
