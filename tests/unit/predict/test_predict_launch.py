"""Launches of tile programs have a price near that of the same operator in a step, and reasons of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from edl_labs.errors import EdlError, UsageError
from edl_labs.predict import predict_launch, predict_step
from edl_labs.roofline import Machine, bound, count_tiles
from edl_labs.virtual.tiles import LaunchRecord, TensorTraffic, jit, tl

MACHINES = ("T4", "A100-80GB", "H100")


@jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


@jit
def strided(x_ptr, y_ptr, n, STEP: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i * STEP))


@jit
def spread(x_ptr, y_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i * STEP, tl.load(x_ptr + i))


@jit
def across(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i * (2**20 // BLOCK) + tl.program_id(0), tl.load(x_ptr + tl.program_id(0) * BLOCK + i))


@jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        total += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(tl.float16))


def doubled(elements: int = 2**22) -> LaunchRecord:
    x = torch.ones(elements)
    return double[(-(-elements // 1024),)](x, torch.empty_like(x), elements, BLOCK=1024)


def multiplied(size: int, tile: int = 128) -> LaunchRecord:
    """What a launch of `product` records; large ones would take the evaluator too long."""
    tiles, elements, sectors = size // tile, size**2, size**2 // 16
    read = [TensorTraffic(name, 2, tiles * elements, 0, elements, 0, 0, tiles * sectors, 0, sectors) for name in "ab"]
    written = TensorTraffic("c", 2, 0, elements, 0, elements, 0, 0, sectors, 0, sectors)
    return LaunchRecord(
        "product",
        (tiles, tiles, 1),
        (*read, written),
        (),
        2 * size**3,
        0,
        0,
        (),
        "fp16",
        tiles**2 * size // 64,
        size // 64,
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_a_stream_takes_what_the_same_operator_takes_in_a_step(machine: str) -> None:
    # Too large for an L2 cache, in which a step would find it.
    launch = predict_launch(doubled(2**24), machine=machine)
    operator = predict_step(lambda x: x * 2, torch.empty(2**24, device="meta"), machine).most_expensive[0]

    # A step's rates of memory hold whatever else slows its kernels; a launch has those of a stream alone.
    assert "memory" == launch.limiter == operator.limiter
    assert launch.total_s == pytest.approx(operator.seconds, rel=0.2)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_product_takes_about_what_a_librarys_takes(machine: str) -> None:
    launch = predict_launch(multiplied(2048), machine=machine)
    a = torch.empty(2048, 2048, device="meta", dtype=torch.float16)
    operator = predict_step(lambda x: x @ a, a, machine, dtype="fp16").most_expensive[0]

    assert 0.6 < launch.total_s / operator.seconds < 1.7


def test_products_that_are_made_up_are_those_that_are_recorded() -> None:
    a, b, c = (torch.ones(256, 256, dtype=torch.float16) for _ in range(3))
    ran = product[(2, 2)](a, b, c, 256, 256, 256, BM=128, BN=128, BK=64)

    made_up = replace(multiplied(256), live_bytes=ran.live_bytes, other_flops=ran.other_flops)

    assert predict_launch(ran).total_s == pytest.approx(predict_launch(made_up).total_s)


def test_light_is_the_rooflines_bound_with_each_element_moved_once() -> None:
    record = doubled()
    sheet = Machine.simple("T4", peak_flop_per_s=8.1e12, bandwidth_byte_per_s=320e9)

    found = predict_launch(record, machine="T4")

    assert found.bound_s == pytest.approx(bound(sheet, count_tiles(record)).time_s)
    assert found.roofline_efficiency == found.bound_s / found.total_s < 1


def test_sectors_of_which_a_part_is_used_cost_time() -> None:
    x = torch.ones(2**22)
    record = strided[(512,)](x, torch.empty(2**19), 2**19, STEP=8, BLOCK=1024)

    found = predict_launch(record, machine="T4")

    assert "memory" == found.limiter
    assert (
        "18.9 MB, counting each sector once" in found.reason
    )  # eight sectors for each sector's worth read, one written
    assert found.total_s > 4.5 * found.bound_s


def test_sectors_that_are_written_in_part_cost_the_cache_time() -> None:
    x = torch.ones(2**20)
    record = across[(128,)](x, torch.empty(2**20), 2**13, BLOCK=2**13)

    found = predict_launch(record, machine="H100")

    assert "L2 cache" == found.limiter
    assert "4.5 times" in found.reason


def test_many_small_programs_are_limited_by_latency() -> None:
    x = torch.ones(2**20)
    small, large = (double[(2**20 // block,)](x, torch.empty_like(x), 2**20, BLOCK=block) for block in (32, 1024))

    assert ("latency", "launch") == tuple(predict_launch(one, machine="H100").limiter for one in (small, large))
    assert "15.5 rounds of programs, 16 at a time per SM" in predict_launch(small, machine="H100").reason


def test_values_beyond_the_registers_make_each_access_wait() -> None:
    x = torch.ones(2**16)

    found = predict_launch(double[(1,)](x, torch.empty_like(x), 2**16, BLOCK=2**16), machine="H100")

    assert "latency" == found.limiter
    assert "a program needs 524,288 B, but has registers for 130,560 B" in found.reason


def test_a_program_a_little_too_large_for_its_registers_waits_a_little() -> None:
    fits, not_quite = (replace(doubled(2**20), live_bytes=live) for live in (130_560, 131_072))

    ratio = predict_launch(not_quite, machine="H100").total_s / predict_launch(fits, machine="H100").total_s

    assert 1 <= ratio < 1.1


def test_one_program_with_a_product_takes_no_longer_than_all_with_one() -> None:
    every = replace(multiplied(512, tile=64), dots=64, most_dots=1)
    one = replace(every, dots=1, dot_flops=every.dot_flops // 64)

    assert predict_launch(one, machine="H100").total_s <= predict_launch(every, machine="H100").total_s


def test_a_last_wave_takes_as_long_as_a_full_one() -> None:
    # 40 multiprocessors: 36 programs are one wave, 64 are two.
    one, two = (predict_launch(multiplied(size), machine="T4") for size in (768, 1024))

    assert two.bound_s / one.bound_s < (two.total_s - 8.147e-6) / (one.total_s - 8.147e-6)


def test_tiles_that_are_too_small_for_the_tensor_cores_wait_for_the_cache() -> None:
    small, large = (predict_launch(multiplied(2048, tile), machine="H100") for tile in (64, 256))

    assert ("L2 cache", "compute") == (small.limiter, large.limiter)


def test_a_few_programs_do_not_draw_all_of_the_memory() -> None:
    read = TensorTraffic("x", 4, 2**20, 0, 2**20, 0, 0, 2**17, 0, 2**17)
    few = LaunchRecord("loop", (1, 1, 1), (read,), (), 0, 0, live_bytes=8192)

    found = predict_launch(few, machine="H100")

    assert "with so few programs, only 1.52 % of the rate is reached" in found.reason


def test_reads_again_that_miss_the_cache_are_in_the_interval() -> None:
    found = predict_launch(multiplied(1024, tile=32), machine="H100")

    assert found.low_s < found.total_s < found.high_s
    assert found.high_s >= 64 * 2**20 * 2 / 3.35e12


def test_a_sector_that_stays_half_written_is_read_from_memory_too() -> None:
    x = torch.ones(2**21)
    whole, half = (spread[(2**11,)](x, torch.empty(2**22), STEP=step, BLOCK=1024) for step in (1, 2))
    start_s = predict_launch(double[(1,)](x, torch.empty(8), 8, BLOCK=8), machine="H100").total_s

    taken_s = [predict_launch(one, machine="H100").total_s - start_s for one in (whole, half)]

    assert taken_s[1] / taken_s[0] == pytest.approx((1 + 4) / 2, rel=0.05)


def test_a_loop_of_products_waits_for_each_of_them_where_programs_are_few() -> None:
    few = replace(multiplied(512, tile=64), live_bytes=24_000)
    deep = replace(few, dots=64 * 64, most_dots=64)
    short_s, deep_s = (predict_launch(one, machine="H100").total_s for one in (few, deep))

    assert "latency" == predict_launch(deep, machine="H100").limiter
    assert deep_s - short_s == pytest.approx(56 * 0.2e-6)


def test_launches_follow_one_another() -> None:
    record = doubled()
    alone, both = predict_launch(record), predict_launch(record, record)

    assert (2, pytest.approx(2 * alone.total_s)) == (both.launches, both.total_s)
    assert both.roofline_efficiency == pytest.approx(alone.roofline_efficiency)
    assert "2 launches" in str(both)


def test_what_cannot_be_predicted_is_said() -> None:
    with pytest.raises(UsageError, match="There is no launch to predict"):
        predict_launch()
    with pytest.raises(UsageError, match="The grid of product has no program"):
        predict_launch(replace(multiplied(256), grid=(0, 1, 1)))
    with pytest.raises(EdlError, match="no accelerator 'H1000'"):
        predict_launch(doubled(), machine="H1000")
