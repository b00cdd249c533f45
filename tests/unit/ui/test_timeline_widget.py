"""The timeline explorer: values first, then a still picture for pages, and sliders where there is a kernel."""

from __future__ import annotations

import base64

import pytest

from edl_labs.errors import UsageError
from edl_labs.ui.timeline_widget import MAX_CHUNKS, SETTINGS, TimelineExplorer


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


def test_one_stream_adds_up_what_its_rows_do():
    explorer = TimelineExplorer("A100", total_bytes=16_000_000)
    line = explorer.timeline(launch_s=5e-6, kernel_s=60e-6, chunk_bytes=2_000_000)

    assert 8 * 60e-6 == pytest.approx(line.busy_s("kernel"))
    assert 0 == line.overlap_s("kernel", "copy")


def test_small_chunks_leave_the_host_as_the_slowest():
    explorer = TimelineExplorer("A100", total_bytes=16_000_000)
    line = explorer.timeline(launch_s=20e-6, kernel_s=6e-6, chunk_bytes=250_000)

    assert 0.95 < line.busy_s("call") / line.makespan_s


@pytest.mark.slow
def test_chunks_of_one_byte_do_not_take_for_ever():
    line = TimelineExplorer(total_bytes=1_000_000).timeline(launch_s=1e-6, kernel_s=1e-6, chunk_bytes=1)

    assert sum(span.kind == "kernel" for span in line.spans) <= MAX_CHUNKS


def test_as_text_it_says_what_its_three_settings_come_to():
    lines = repr(TimelineExplorer("H200")).splitlines()

    assert "a modelled H200 moves 16 MB in and out:" == lines[0]
    assert 1 + len(SETTINGS) == len(lines)


def test_a_page_without_a_kernel_gets_a_picture():
    bundle, about = TimelineExplorer()._repr_mimebundle_()

    assert " ".join(bundle["text/plain"].split()) == about["image/png"]["alt"]
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"].startswith("a modelled A100")


def test_dragging_a_slider_redraws_the_picture():
    box = TimelineExplorer().widget()
    *sliders, picture = box.children
    before = bytes(picture.value)
    sliders[2].index = 0

    assert ["launch overhead", "kernel time per chunk", "chunk size"] == [slider.description for slider in sliders]
    assert bytes(picture.value).startswith(b"\x89PNG")
    assert before != bytes(picture.value)
    sliders[2].index = 20
    assert before == bytes(picture.value), "nothing of another setting is left in the picture"


def test_too_few_bytes_to_cut_are_refused():
    with pytest.raises(UsageError, match="too few to split"):
        TimelineExplorer(total_bytes=10)


def test_a_picture_with_a_tooltip_has_the_description_that_the_front_end_asks_for():
    """Without one, ipywidgets 8.1 shows "Click to show javascript error" in place of the picture."""
    state = TimelineExplorer().widget().children[-1].get_state()

    assert ("", True) == (state["description"], "kernels run" in state["tooltip"])
