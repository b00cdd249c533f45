"""A point stands under its roof, or is refused with the assumption that broke."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.bench import measure
from edl_labs.bench.detectors.machine_limits import excess
from edl_labs.device import describe
from edl_labs.errors import UsageError
from edl_labs.roofline import (
    AboveRoof,
    Ceiling,
    Machine,
    MemoryLevel,
    Point,
    Work,
    _ceilings,
    bound,
    place,
    place_all,
    work,
    you_are_here,
)

MACHINE = Machine(
    "bench",
    (
        MemoryLevel("LLC", 32e6, {"read": Ceiling(100e9), "copy": Ceiling(90e9)}),
        MemoryLevel(
            "DRAM", math.inf, {"read": Ceiling(22e9, 21.8e9, 22.2e9), "copy": Ceiling(20e9), "triad": Ceiling(19e9)}
        ),
    ),
    {"fp32": Ceiling(1e12), "bf16": Ceiling(4e12)},
)


def at(done, times_of_light, **where):
    where = {"name": done.name or "op", **where}
    light = bound(MACHINE, done, level=where.get("level"), pattern=where.get("pattern")).light_s
    return Point(work=done, time_s=light * times_of_light, **where)


@given(flops=st.floats(1e3, 1e14), moved=st.floats(1e3, 1e12), factor=st.floats(1.0, 1e4))
def test_every_point_at_or_below_light_is_placed(flops, moved, factor):
    placed = place(MACHINE, at(Work(flops, 0, moved), factor))

    assert placed.fraction_of_light == pytest.approx(1 / factor)
    assert placed.lost_s >= 0


@given(flops=st.floats(1e3, 1e14), moved=st.floats(1e3, 1e12), factor=st.floats(0.01, 0.95))
def test_every_point_above_light_is_refused(flops, moved, factor):
    with pytest.raises(AboveRoof) as caught:
        place(MACHINE, at(Work(flops, 0, moved), factor))

    assert all((caught.value.what, caught.value.why, caught.value.next, caught.value.reason))


def test_both_intervals_and_two_percent_are_allowed():
    done = Work(0, 0, 22e9)

    assert place(MACHINE, at(done, 0.985))
    # Within the ceiling's interval and 2 %.
    assert place(MACHINE, at(done, 22 / 22.2 / 1.019))
    assert place(MACHINE, dataclasses.replace(at(done, 0.9), low_s=0.8, high_s=0.99))
    with pytest.raises(AboveRoof):
        place(MACHINE, at(done, 22 / 22.2 / 1.03))


def test_a_working_set_that_fits_in_cache_is_told_so_and_stands_under_the_caches_roof():
    point = at(work.elementwise(10**6), 0.3)
    with pytest.raises(AboveRoof) as caught:
        place(MACHINE, point)

    assert "cache-resident" == caught.value.reason
    assert "fit in LLC" in caught.value.why
    assert place(MACHINE, dataclasses.replace(point, level="LLC")).fraction_of_light < 1


def test_a_read_held_against_the_copy_rate_is_told_so():
    with pytest.raises(AboveRoof) as caught:
        place(MACHINE, at(work.reduction(10**9), 20 / 22, pattern="copy"))

    assert "read against copy" == caught.value.reason
    assert "pattern='read'" in caught.value.next


def test_a_convolution_above_the_peak_may_do_fewer_flops():
    done = work.conv2d(32, 256, 256, height=56, width=56, padding=1)
    with pytest.raises(AboveRoof) as caught:
        place(MACHINE, at(done, 1 / 2.25))

    assert "fewer FLOPs" == caught.value.reason
    assert "Winograd" in caught.value.why


def test_a_product_above_its_peak_may_have_run_in_another_dtype():
    with pytest.raises(AboveRoof) as caught:
        place(MACHINE, at(work.gemm(4096, 4096, 4096), 0.3))

    assert "wrong dtype" == caught.value.reason
    assert "bf16" in caught.value.why


def test_a_rate_above_every_ceiling_is_of_another_device():
    with pytest.raises(AboveRoof) as caught:
        place(MACHINE, at(work.gemm(4096, 4096, 4096), 0.01))

    assert "wrong device" == caught.value.reason


def test_a_point_timed_elsewhere_is_told_where():
    here = dataclasses.replace(MACHINE, stamp=describe("cpu"))
    with pytest.raises(AboveRoof) as caught:
        place(here, at(Work(0, 0, 1e12), 0.1, device="NVIDIA H200"))

    assert "wrong device" == caught.value.reason
    assert "NVIDIA H200" in caught.value.why


def test_more_than_all_memory_can_is_told_so():
    with pytest.raises(AboveRoof) as caught:
        place(MACHINE, at(Work(0, 0, 1e12), 0.1))

    assert "fewer bytes or wrong device" == caught.value.reason


def test_latency_is_no_law_of_nature():
    slow_start = dataclasses.replace(MACHINE, latency_s=1.0)

    assert "latency" == place(slow_start, Point("tiny", Work(0, 0, 22), 0.5)).bound.limiter


def test_points_are_ranked_by_the_time_they_lose():
    points = [
        at(Work(0, 0, 22e9), 1.5, name="once"),
        at(Work(0, 0, 22e6), 3.0, name="often", calls=1000),
        at(Work(1e12, 0, 1), 1.0, name="at light"),
    ]
    placed = place_all(MACHINE, points)

    assert ["often", "once", "at light"] == [one.point.name for one in placed]
    assert [2.0, 0.5, 0.0] == pytest.approx([one.lost_s for one in placed])
    assert (
        "often: 33 % of the speed of light, limited by memory (DRAM); took 3 ms, of which 1 ms is the bound"
        == placed[0].words
    )
    assert you_are_here(placed).startswith("you are here: 2.5 s could be gained in total\n  often")
    assert "nothing has been measured yet" == you_are_here([])


def test_a_point_is_made_of_a_measurement_and_is_plain_data():
    m = measure(lambda: sum(range(100)), budget_s=0.01)
    point = Point.of("sum", Work(0, 100, 800), m, module="here")

    assert (m.median_s, m.low_s, m.high_s) == (point.time_s, point.low_s, point.high_s)
    assert describe("cpu").device_name == point.device
    assert "sum" == json.loads(json.dumps(place(MACHINE, point).to_json()))["point"]["name"]


@pytest.mark.parametrize("time_s", [0, -1, math.nan, math.inf, "1"])
def test_a_time_that_is_none_is_refused(time_s):
    with pytest.raises(UsageError):
        Point("x", Work(1, 0, 1), time_s)


BUSY = dataclasses.replace(MACHINE, matmul={"fp32": Ceiling(1e12, 0.5e12, 2e12)}, origin="measured")


def test_a_roof_in_doubt_is_told_when_something_beats_it():
    flops = Work(1e12, 0, 1e6, "fp32", "product")
    with pytest.raises(AboveRoof) as caught:
        place(BUSY, Point("product", flops, 0.3))

    assert "roof in doubt" == caught.value.reason
    assert "only to ± 75 %" in caught.value.why
    assert "refresh=True" in caught.value.next
    assert place(BUSY, Point("product", flops, 0.6))


def test_a_card_that_was_beaten_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("EDL_LABS_CACHE", str(tmp_path))
    other = dataclasses.replace(BUSY, name="another")
    for name, machine in (("a", BUSY), ("b", other)):
        _ceilings._remember(tmp_path / f"ceilings-{name}.json", machine)
    with pytest.raises(AboveRoof, match="the next ceilings"):
        place(BUSY, Point("product", Work(1e12, 0, 1e6), 0.3))

    assert ["ceilings-b.json"] == [path.name for path in tmp_path.iterdir()]


REMEMBERED = dataclasses.replace(MACHINE, origin="measured")
H200 = dataclasses.replace(
    REMEMBERED, matmul={"fp32": Ceiling(40e12), "bf16": Ceiling(700e12)}, hardware_key="H200", name="NVIDIA H200"
)


@pytest.mark.parametrize(
    ("machine", "point", "kept", "told"),
    [
        # A count that is wrong by far, FLOPs or bytes: no busy moment hides so much.
        (
            REMEMBERED,
            Point("count", Work(1e15, 0, 1e6), 1.0),
            True,
            "count or the clock is in doubt, by a factor of 1e+03",
        ),
        (
            REMEMBERED,
            Point("bytes", Work(0, 0, 22e12), 1.0),
            True,
            "count or the clock is in doubt, by a factor of 991",
        ),
        (BUSY, Point("count", Work(1e15, 0, 1e6), 1.0), True, "count or the clock is in doubt, by a factor of 500"),
        # A little above every roof: one of them was taken at a bad moment.
        (REMEMBERED, Point("faster", Work(5e12, 0, 1e6, "bf16"), 1.0), False, "saved machine card was dropped"),
        (REMEMBERED, Point("faster", Work(1.3e12, 0, 1e6), 1.0), False, "saved machine card was dropped"),
        (REMEMBERED, Point("stream", Work(0, 0, 33e9), 1.0), False, "saved machine card was dropped"),
        # Above what the chip could ever do, however little that is above the measured roof.
        (H200, Point("faster", Work(1.1e15, 0, 1e6, "bf16"), 1.0), True, "the saved machine card is kept"),
        (H200, Point("faster", Work(0.9e15, 0, 1e6, "bf16"), 1.0), False, "saved machine card was dropped"),
        # Explained without any doubt: the data were in a cache, another dtype's units, another pattern, device.
        (REMEMBERED, Point("resident", work.elementwise(10**6), 1e-4), True, "place it under that roof"),
        (REMEMBERED, Point("dtype", Work(3.5e12, 0, 1e6), 1.0), True, "name the dtype"),
        (REMEMBERED, Point("read", Work(0, 0, 21.5e9), 1.0, pattern="copy"), True, "pattern='read'"),
    ],
)
def test_the_remembered_card_is_dropped_only_where_the_roof_is_in_doubt(
    tmp_path, monkeypatch, machine, point, kept, told
):
    monkeypatch.setenv("EDL_LABS_CACHE", str(tmp_path))
    _ceilings._remember(tmp_path / "ceilings-a.json", machine)
    with pytest.raises(AboveRoof) as caught:
        place(machine, point)

    assert told in caught.value.next
    assert kept == (tmp_path / "ceilings-a.json").exists()


def test_what_fits_in_a_cache_that_nobody_measured_is_held_against_no_memory():
    blind = dataclasses.replace(MACHINE, unmeasured={"L1": 64e3, "L2": 2e6}, settings={"L2": "not measured: why"})
    inside, beyond = Work(0, 0, 1e6), Work(0, 0, 3e6)

    assert 0 == blind.least_s(inside)
    assert MACHINE.least_s(beyond) == blind.least_s(beyond)
    assert ("L1", "L2", "") == tuple(blind.unmeasured_for(size) for size in (1e3, 1e6, 3e6))
    with pytest.raises(AboveRoof) as caught:
        place(blind, Point("small", inside, 1e-6, level="LLC"))
    assert "fit in L2, which was not measured here" in caught.value.why
    with pytest.raises(UsageError, match="not measured: why"):
        blind.level("L2")


def test_a_time_between_a_ceiling_and_its_upper_end_is_not_faster_than_light():
    assert 0.5 == BUSY.least_s(Work(1e12, 0, 1e6))
    assert 0.75 == BUSY.doubt
    assert "but the machine's ceilings are uncertain, ± 75 %" in excess(0.1, 0.1, work=Work(1e12, 0, 1e6), machine=BUSY)
    assert "doubt" not in excess(0.1, 0.1, work=Work(1e12, 0, 1e6), machine=MACHINE)
