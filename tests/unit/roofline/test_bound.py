"""The bound is the longest of arithmetic, memory and latency; the diagnosis follows the deck's recipe."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.bench.detectors.machine_limits import bound_s
from edl_labs.errors import EdlError, UsageError
from edl_labs.roofline import (
    Ceiling,
    Machine,
    MemoryLevel,
    Work,
    attainable_flop_per_s,
    bound,
    find_limiter,
    gemm,
    work,
)

DECK = Machine.simple("deck", peak_flop_per_s=6e12, bandwidth_byte_per_s=300e9, units=20, latency_s=5e-6)
LAYERED = Machine(
    "layered",
    (
        MemoryLevel("L2", 1e6, {"read": Ceiling(4e12, 3.9e12, 4.1e12), "copy": Ceiling(3e12)}),
        MemoryLevel("DRAM", math.inf, {"read": Ceiling(1e12, 0.9e12, 1.1e12), "copy": Ceiling(0.8e12)}),
    ),
    {"bf16": Ceiling(100e12, 90e12, 110e12), "fp32": Ceiling(10e12)},
    {"fp32": Ceiling(5e12)},
)
AMOUNTS = st.floats(0, 1e15, allow_subnormal=False)


@given(flops=AMOUNTS, moved=AMOUNTS)
def test_the_bound_is_the_longest_of_the_three(flops, moved):
    found = bound(DECK, Work(flops, 0, moved))

    assert max(flops / 6e12, moved / 300e9, 5e-6) == pytest.approx(found.time_s)
    assert found.light_s <= found.time_s
    assert found.low_s <= found.time_s <= found.high_s


@given(flops=st.floats(1, 1e15), moved=st.floats(1, 1e15))
def test_a_point_at_its_bound_lies_on_the_roofline(flops, moved):
    machine = Machine.simple("m", peak_flop_per_s=6e12, bandwidth_byte_per_s=300e9)
    found = bound(machine, Work(flops, 0, moved))

    assert attainable_flop_per_s(machine, flops / moved) == pytest.approx(found.flop_per_s)


@pytest.mark.parametrize(
    ("done", "limiter"), [(Work(6e9, 0, 1e6), "compute"), (Work(6e6, 0, 3e8), "memory"), (Work(6, 0, 3), "latency")]
)
def test_the_limiter_is_named(done, limiter):
    assert limiter == bound(DECK, done).limiter


def test_the_fraction_of_light_is_bound_over_time():
    found = bound(DECK, Work(6e9, 0, 1e6), time_s=2e-3)

    assert (0.5, 1e-3) == (found.fraction_of_light, found.lost_s)
    assert "at least 1 ms, limited by compute; took 2 ms, 0.5 of the speed of light" == str(found)
    assert bound(DECK, Work(6e9, 0, 1e6)).fraction_of_light is None


def test_a_nearer_level_and_a_pattern_change_the_slope():
    done = Work(0, 0, 8e5, "bf16")

    assert [8e-7, 2e-7, 1e-6] == pytest.approx(
        [
            bound(LAYERED, done).time_s,
            bound(LAYERED, done, level="l2").time_s,
            bound(LAYERED, done, pattern="copy").time_s,
        ]
    )
    assert "memory (L2)" == bound(LAYERED, done, level="L2").where


def test_the_bound_carries_the_ceilings_intervals():
    found = bound(LAYERED, Work(100e12, 0, 1, "bf16"))

    assert (1.0, 1 / 1.1, 1 / 0.9) == pytest.approx((found.time_s, found.low_s, found.high_s))


def test_units_of_their_own_overlap_and_a_shared_unit_adds():
    done = Work(1e12, 1e12, 0)

    assert 0.2 == pytest.approx(bound(LAYERED, done).compute_s)
    assert 2 / 6 == pytest.approx(bound(DECK, done).compute_s)


def test_arithmetic_that_no_contraction_has_runs_in_fp32_at_least():
    assert 0.2 == pytest.approx(bound(LAYERED, Work(0, 1e12, 0, "bf16")).compute_s)


def test_measuring_refuses_times_below_the_nearest_memory():
    small, large = Work(0, 0, 5e5, "bf16"), Work(0, 0, 5e9, "bf16")

    assert (5e5 / 4.1e12, 5e9 / 1.1e12) == pytest.approx((bound_s(small, LAYERED), bound_s(large, LAYERED)))


def test_the_recipe_asks_for_parallelism_too():
    full = find_limiter(DECK, work.gemm(4096, 4096, 4096), parallel_items=512)
    few = find_limiter(DECK, work.gemm(4096, 4096, 4096), parallel_items=19)

    assert ("compute", "latency") == (full.limiter, few.limiter)
    assert "19 independent pieces leave some units idle" in few.steps
    assert "memory" == find_limiter(DECK, work.elementwise(10**8)).limiter
    assert "latency" == find_limiter(DECK, work.elementwise(100)).limiter


def test_a_machine_from_the_table_has_its_datasheet_peaks():
    machine = Machine.of("A100-80GB")

    assert 153 == pytest.approx(machine.ridge_flop_per_byte("fp16"), rel=1e-3)
    assert (108, "datasheet") == (machine.units, machine.origin)
    assert 19.5e12 == pytest.approx(machine.vector["fp32"].rate, rel=1e-2)


def test_machines_survive_json():
    for machine in (DECK, LAYERED, Machine.of("H200")):
        assert machine.to_json() == Machine.from_json(json.loads(json.dumps(machine.to_json()))).to_json()


def test_bounds_and_diagnoses_are_plain_data():
    found = find_limiter(DECK, Work(6e9, 0, 1e6), parallel_items=3, time_s=1.0)

    assert "latency" == json.loads(json.dumps(found.to_json()))["limiter"]
    assert 1e-3 == json.loads(json.dumps(found.bound.to_json()))["fraction_of_light"]


def test_tiles_and_waves_are_rounded_up():
    exact = gemm.quantization(256 * 27, 128 * 4, 1024, tile=(256, 128), sms=108)
    over = gemm.quantization(256 * 27 + 1, 128 * 4, 1024, tile=(256, 128), sms=108)

    assert (108, 1, 1.0) == (exact.tiles, exact.waves, exact.efficiency)
    assert (112, 2) == (over.tiles, over.waves)
    assert over.efficiency == pytest.approx((256 * 27 + 1) / (256 * 28) * 112 / 216)
    assert 0.5 == gemm.quantization(64, 64, 32, tile=(64, 64, 64), sms=1).tile_efficiency


@pytest.mark.parametrize(
    "call",
    [
        lambda: Machine.simple("m", peak_flop_per_s=0, bandwidth_byte_per_s=1),
        lambda: Machine.simple("m", peak_flop_per_s=1, bandwidth_byte_per_s=math.nan),
        lambda: Machine.simple("m", peak_flop_per_s={}, bandwidth_byte_per_s=1),
        lambda: Machine.of("H300"),
        lambda: MemoryLevel("x", 1, {"write": Ceiling(1)}),
        lambda: Ceiling(1, 2, 3),
        lambda: Machine.from_json({"kind": "measurement"}),
        lambda: LAYERED.level("L9"),
        lambda: LAYERED.level("L2").ceiling("triad"),
        lambda: LAYERED.peak("fp64"),
        lambda: bound(DECK, Work(1, 0, 1, "fp16")),
        lambda: bound(DECK, Work(1, 0, 1), time_s=0),
        lambda: bound("H100", Work(1, 0, 1)),
        lambda: bound(DECK, {"flops": 1}),
        lambda: find_limiter(DECK, Work(1, 0, 1), parallel_items=0),
        lambda: attainable_flop_per_s(DECK, -1),
        lambda: gemm.quantization(8, 8, 8, tile=(8,), sms=1),
        lambda: gemm.quantization(8, 8, 0, tile=(8, 8), sms=1),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises((EdlError, UsageError)) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))


@pytest.mark.parametrize(
    ("done", "limiter", "words"),
    [
        (
            Work(1e9, 1e12, 1e10, "bf16"),
            "compute",
            "100.1 FLOP/B, 100 of them on the unit that takes longest, which is above that",
        ),
        (
            Work(7e12, 1e12, 1e12, "bf16"),
            "memory",
            "8 FLOP/B, 1 of them on the unit that takes longest, which is below that",
        ),
        (Work(1e13, 1e9, 1e10, "bf16"), "compute", "above that"),
    ],
)
def test_the_diagnosis_names_the_ridge_of_the_unit_that_takes_longest(done, limiter, words):
    found = find_limiter(Machine.of("H200"), done)

    assert limiter == found.limiter
    assert words in found.steps[1]


def test_bytes_alone_need_no_ceiling_for_arithmetic():
    found = find_limiter(DECK, Work(0, 0, 3e9, "bf16"))

    assert (0.01, 0.0) == pytest.approx((found.bound.time_s, found.ridge_flop_per_byte))
    assert ("memory", "the work: no arithmetic, only bytes of memory") == (found.limiter, found.steps[1])
