"""Pictures of a service: what is drawn is what was replayed, and what is named is what stands out."""

from __future__ import annotations

import pytest

from edl_labs.errors import UsageError
from edl_labs.plots import serving_pictures, style
from edl_labs.virtual.server import Arrival, VirtualServer, load_curve, replay
from tests.unit.virtual.server.test_virtual_server import SLOW, admit_all


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def even(rate):
    return [Arrival(number / rate, 2, 2) for number in range(12)]


def test_the_knee_is_where_the_wait_has_doubled_and_is_named():
    curve = load_curve(SLOW, admit_all, even, [0.01, 0.05, 0.1, 5.0])
    axes = curve.plot()

    assert 2 * curve.points[0].latency_p99_s >= curve.knee.latency_p99_s
    assert curve.points[-1].latency_p99_s > 2 * curve.points[0].latency_p99_s
    assert [f"knee: {curve.knee.offered_per_s:g}/s"] == [text.get_text().split(",")[0] for text in axes.texts]
    assert 0.0 == curve.largest_within(latency_s=1e-3)
    assert curve == type(curve).from_json(curve.to_json())


@pytest.mark.parametrize("rates", [[], [2.0, 1.0], [0.0, 1.0]])
def test_loads_that_do_not_grow_are_refused(rates):
    with pytest.raises(UsageError, match="rates of"):
        load_curve(SLOW, admit_all, even, rates)


def test_the_gantt_has_a_row_a_request_and_marks_who_was_taken_out():
    server = VirtualServer(SLOW, [(0.0, 4, 3), (0.0, 1, 1)])
    server.allocate(0, 2)
    server.admit(0)
    server.step()
    server.step()
    server.preempt(0)
    run = replay(server.run(admit_all))
    axes = run.plot()
    marks = [line for line in axes.lines if line.get_label() == "preempted"]

    assert (1, 0) == (len(marks), int(marks[0].get_ydata()[0]))
    assert "p99 of the time to the first word" in axes.get_title()
    assert {"waits", "prompt", "answer", "preempted"} == {text.get_text() for text in axes.get_legend().get_texts()}


def test_the_pool_says_how_full_it_is():
    run = replay(VirtualServer(SLOW, [(0.0, 4, 1), (0.0, 4, 2)]).run(admit_all))
    axes = serving_pictures.draw_pool(style.subplots()[1], run, title="tight")

    assert axes.get_title().startswith("tight: ")
    assert {"hold tokens", "held, empty", "pool"} == set(axes.get_legend_handles_labels()[1])
