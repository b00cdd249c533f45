"""The bucket explorer: sums first, then a still picture for pages, and sliders where there is a kernel."""

from __future__ import annotations

import base64
import time

import pytest

from edl_labs.errors import UsageError
from edl_labs.ui.bucket_widget import CAPS, BucketExplorer
from edl_labs.virtual.cluster import VirtualCluster


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


@pytest.fixture
def explorer() -> BucketExplorer:
    return BucketExplorer([(4e6, 1e-3)] * 6, ranks=4, alpha_s=1e-5, byte_per_s=6e9)


def test_a_bucket_closes_when_it_holds_its_size_and_the_rest_is_one_too(explorer):
    assert [8e6, 8e6, 8e6] == [one.gradient_bytes for one in explorer.buckets(5e6)]
    assert [20e6, 4e6] == [one.gradient_bytes for one in explorer.buckets(17e6)]
    assert pytest.approx([5e-3, 6e-3]) == [one.ready_s for one in explorer.buckets(17e6)]


@pytest.mark.parametrize("cap", [0.0, 9e6, 24e6])
def test_what_is_exposed_is_what_the_cluster_replays(explorer, cap):
    def program(dist):
        works, gradients, at = [], dist.tensor(6_000_000, name="gradients"), 0
        for bucket in explorer.buckets(cap):
            count = int(bucket.gradient_bytes) // 4
            part = gradients[at : at + count]
            dist.launch("backward", duration_s=count // 1_000_000 * 1e-3, writes=part)
            works.append(dist.all_reduce(part, async_op=True, algorithm="ring"))
            at += count
        for work in works:
            work.wait()

    run = VirtualCluster.flat(4, alpha_s=1e-5, byte_per_s=6e9).run(program)

    assert run.makespan_s == pytest.approx(explorer.times(4, cap, 6e9).finish_s, rel=1e-9)


def test_slow_links_leave_all_sums_over_and_fast_ones_the_last(explorer):
    slow, fast = explorer.times(4, 0.0, 1e3), explorer.times(4, 0.0, 1e15)
    last = 2 * (4 - 1) * (1e-5 + 4e6 / 4 / 1e15)  # a ring's rounds

    assert slow.exposed_s > 100 * explorer.backward_s
    assert fast.exposed_s == pytest.approx(last)


@pytest.mark.parametrize("cap", [0.0, 5e6, 9e6, 24e6])
@pytest.mark.parametrize("byte_per_s", [1e8, 6e9, 1e12])
def test_sums_hide_no_more_than_the_backward_pass(explorer, cap, byte_per_s):
    times, buckets = explorer.times(4, cap, byte_per_s), explorer.buckets(cap)
    sums_s = sum(2 * 3 * (1e-5 + one.gradient_bytes / 4 / byte_per_s) for one in buckets)

    assert times.finish_s >= max(explorer.backward_s, sums_s) * (1 - 1e-9)
    assert times.finish_s <= (explorer.backward_s + sums_s) * (1 + 1e-9)
    assert all(start_s >= one.ready_s for start_s, one in zip(times.start_s, buckets, strict=True))


@pytest.mark.parametrize("layers", [[], [(0.0, 1e-3)], [(4e6, -1.0)], [(1.0, 0.0)] * 2001])
def test_layers_that_cannot_be_are_refused(layers):
    with pytest.raises(UsageError, match="layers, each with a size above 0 and a time of 0 or more"):
        BucketExplorer(layers)


def test_the_text_has_a_line_for_each_setting(explorer):
    assert 1 + len(explorer.settings()) == len(repr(explorer).splitlines())


def test_a_chain_of_no_seconds_and_one_layer_can_be_shown():
    assert "1 sum" in repr(BucketExplorer([(1.0, 0.0)]))


@pytest.mark.slow  # draws three pictures
def test_a_picture_stands_in_for_the_sliders(explorer):
    bundle = explorer._repr_mimebundle_()[0]

    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")


@pytest.mark.slow  # draws some pictures
def test_the_sliders_redraw_the_picture_and_a_thousand_layers_draw_like_few(explorer):
    def drawn_s(shown):
        box = shown.widget()
        *sliders, picture = box.children
        before, began_s = (picture.value, picture.tooltip), time.process_time()
        sliders[1].value = CAPS[0]
        assert before != (picture.value, picture.tooltip)
        return time.process_time() - began_s

    ratios = [drawn_s(BucketExplorer([(4e5, 1e-4)] * 1500)) / drawn_s(explorer) for _ in range(3)]

    assert min(ratios) < 3
