"""The picture of a cluster: a row a rank, bars with a hatch each, and lines where ranks meet."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.collections import LineCollection, PolyCollection

from edl_labs.plots import cluster_picture, style
from edl_labs.virtual.cluster import VirtualCluster

mpl.use("Agg")


def step(dist) -> None:
    late = dist.get_rank() == 2
    dist.launch("backward", duration_s=2e-3 if late else 1e-3)
    dist.all_reduce(dist.tensor(1_000_000, name="bucket"), name="bucket 0")
    if dist.get_rank() == 0:
        dist.send(dist.tensor(1_000_000), 1)
    if dist.get_rank() == 1:
        dist.recv(dist.empty(1_000_000), 0)


@pytest.fixture
def axes():
    figure, axes = style.subplots()
    yield axes
    plt.close(figure)


def test_each_rank_has_a_row_and_each_kind_a_hatch_of_its_own(axes):
    VirtualCluster.flat(3).run(step).timeline.plot(axes, title="one step")

    assert ["rank 0", "rank 1", "rank 2"] == [label.get_text() for label in axes.get_yticklabels()]
    bars = [one for one in axes.collections if isinstance(one, PolyCollection)]
    shown = {(tuple(one.get_facecolor()[0]), one.get_hatch()) for one in bars}
    assert 5 == len({hatch for _, hatch in shown if hatch}) + 1  # kernels of no backward pass have none
    hatches = [hatch for _, hatch, _ in cluster_picture.KINDS.values()]
    assert len(hatches) == len(set(hatches))


def test_a_line_joins_the_ranks_of_a_call_and_a_bar_shows_who_waited(axes):
    timeline = VirtualCluster.flat(3).run(step).timeline
    timeline.plot(axes)
    lines = [one.get_segments()[0] for one in axes.collections if isinstance(one, LineCollection)]
    met = sorted({round(float(segment[0][0]), 9) for segment in lines})
    waited = {span.rank for span in timeline.spans if span.kind == "collective" and span.waited_s > 0}

    assert 2 == len(lines)
    assert pytest.approx(2e-3, rel=1e-3) == met[0]
    assert {0, 1} == waited
    assert any("bucket 0" in text.get_text() for text in axes.texts)


def test_a_part_of_the_time_and_an_empty_program_draw_too(axes):
    replay = VirtualCluster.flat(3).run(step)
    cluster_picture.draw_cluster(axes, replay.timeline, start_s=1e-3, end_s=2e-3)

    assert (1e-3, 2e-3) == axes.get_xlim()
    VirtualCluster.flat(2).run(lambda dist: None).timeline.plot()
    plt.close()
