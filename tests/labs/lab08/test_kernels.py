"""lab08's solutions by hand: sectors and conflicts of the transposition, prices of tiles and stems, sums."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from edl_labs.exercises.lab08_kernels.judge.drawn_tiles import priced
from edl_labs.virtual.warp import VirtualWarp


@pytest.mark.parametrize(("rows", "columns", "dtype"), [(32, 32, "float32"), (48, 80, "float32"), (16, 48, "float64")])
def test_the_transposition_moves_no_sector_too_many(solution, rows, columns, dtype):
    gpu = VirtualWarp()
    src, dst = gpu.array("src", (rows, columns), dtype), gpu.array("dst", (columns, rows), dtype)
    solution["transpose"](gpu, src, dst)
    run = gpu.replay()

    assert np.array_equal(np.arange(rows * columns).reshape(rows, columns).T, run.values("dst"))
    assert 2 * rows * columns * int(dtype[-2:]) // 8 // 32 == run.sectors
    assert (0, (), (), ()) == (run.bank_conflicts, run.races, run.hangs, run.undefined)


def test_other_tiles_and_blocks_are_right_too(judged):
    def transpose(gpu, src, dst):
        """Tiles of 16 × 16, each element by a thread of its own; a row of the tile has 18 words for 8-byte elements."""
        width = 16

        def turn(cuda, src, dst):
            tile = cuda.shared.array((32, 33), src.dtype)
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
            for down in (0, width):
                if top + y + down < src.shape[0] and left + x < src.shape[1]:
                    tile[y + down, x] = src[top + y + down, left + x]
            cuda.syncthreads()
            for down in (0, width):
                if left + y + down < dst.shape[0] and top + x < dst.shape[1]:
                    dst[left + y + down, top + x] = tile[x, y + down]

        grid = (-(-src.shape[1] // 32), -(-src.shape[0] // 32))
        gpu.launch(turn, src, dst, grid=grid, block=(32, width))

    assert 1.0 == judged("coalesced", transpose=transpose).points


@pytest.mark.slow
def test_a_transposition_with_conflicts_keeps_half(judged):
    def transpose(gpu, src, dst):
        def turn(cuda, src, dst):
            tile = cuda.shared.array((32, 32), src.dtype)
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
            if top + y < src.shape[0] and left + x < src.shape[1]:
                tile[y, x] = src[top + y, left + x]
            cuda.syncthreads()
            if left + y < dst.shape[0] and top + x < dst.shape[1]:
                dst[left + y, top + x] = tile[x, y]

        grid = (-(-src.shape[1] // 32), -(-src.shape[0] // 32))
        gpu.launch(turn, src, dst, grid=grid, block=(32, 32))

    outcome = judged("coalesced", transpose=transpose)
    assert (0.5, "in your kernel, threads of a warp access the same bank of shared memory") == (
        outcome.points,
        outcome.what,
    )


@pytest.mark.parametrize("seed", range(1, 6))
def test_products_are_priced_alike_by_the_judge_and_the_solution(exercises, solution, seed):
    for case in exercises["tile_choice"].draw_cases(seed):
        for tile, fields in enumerate(case["chip"]["tiles"]):
            for split in case["chip"]["splits"]:
                took = solution["product_s"](case["m"], case["n"], case["k"], fields, split, case["chip"])
                assert priced(case, tile, split) == pytest.approx(took)


def test_a_product_by_hand(solution):
    tile = {"m": 128, "n": 128, "efficiency": 0.5, "per_sm": 2}
    chip = {"sm_count": 2, "sm_flop_per_s": 1e12, "byte_per_s": 1e9, "launch_s": 1e-6}

    # Six blocks on four places: two waves; a block has half of 0.5 TFLOP/s.
    assert 2 * 2 * 128 * 128 * 100 / 0.25e12 == pytest.approx(solution["product_s"](257, 256, 100, tile, 1, chip))
    # Twelve blocks over 34 of 100 each, in three waves; 26 bytes an output element.
    by_hand = 5 * 2 * 128 * 128 * 34 / 0.25e12 + 26 * 257 * 256 / 1e9 + 1e-6
    assert by_hand == pytest.approx(solution["product_s"](257, 256, 100, tile, 3, chip))


def test_six_numbers_in_float16_sum_to_anything_between(solution):
    low, high = solution["range_of_sums"](solution["SIX"], "float16")

    assert (0.0, 2.0) == (low, high)
    assert 2.0 == math.fsum(solution["SIX"])


def test_sums_are_the_same_bits_in_every_order_of_arrival(solution):
    numbers = np.random.default_rng(0).normal(size=777).astype("float32") * 1e4
    gpu = VirtualWarp()
    solution["steady_sum"](gpu, gpu.array("values", numbers), gpu.array("out", 1))
    runs = [gpu.replay(arrival_seed=seed) for seed in range(4)]

    assert 1 == len({run.values("out")[0].tobytes() for run in runs})
    assert math.fsum(numbers) == pytest.approx(float(runs[0].values("out")[0]), rel=1e-4)
    assert 4 + 6 + 3 >= runs[0].depth(runs[0].origins("out")[0])


def test_atomics_in_64_bits_are_found_though_their_bits_agree(judged):
    """The sums are rounded to float32 in the end and come out alike; the order is that of arrival all the same."""

    def steady_sum(gpu, values, out):
        def cleared(cuda, total):
            total[0] = 0.0

        def added(cuda, values, total):
            i = cuda.grid(1)
            if i < len(values):
                cuda.atomic.add(total, 0, values[i])

        def written(cuda, total, out):
            out[0] = total[0]

        total = gpu.array("total", 1, "float64")
        gpu.launch(cleared, total, grid=1, block=1)
        gpu.launch(added, values, total, grid=-(-len(values) // 64), block=64)
        gpu.launch(written, total, out, grid=1, block=1)

    outcome = judged("order_matters", steady_sum=steady_sum)
    assert (0, "in your program, the order of additions depends on the order in which threads arrive") == (
        outcome.points,
        outcome.what,
    )


def test_a_stem_by_hand(solution):
    machine = {"flop_per_s": 1e12, "byte_per_s": 1e9, "multiple": 8}
    stem = {"input": (2, 3, 8, 8), "layers": [{"kind": "unshuffle", "factor": 2}, {"kind": "se"}]}
    conv = {"kind": "conv", "channels": 5, "kernel": 3, "stride": 2}

    # 384 elements, moved there and back; then the same number three times.
    assert 2 * (2 + 3) * 384 / 1e9 == pytest.approx(solution["stem_s"](stem, machine))
    # 12 channels are 16, and 2 × 2 pixels are put out.
    flop = 2 * (2 * 5 * 4) * 16 * 9
    moved = 2 * (384 + 5 * 12 * 9 + 2 * 5 * 4)
    slow = {**machine, "flop_per_s": 1e9}
    stem["layers"] = [{"kind": "unshuffle", "factor": 2}, conv]
    assert 2 * 2 * 384 / 1e9 + max(flop, moved) / 1e9 == pytest.approx(solution["stem_s"](stem, slow))


def test_a_program_that_was_tampered_with_earns_nothing(exercises, judged, solution):
    """Sectors cannot be wished away: the record says where each element came from, and each access is in it."""
    from edl_labs.errors import Wrong

    exercise = exercises["coalesced"]
    case = exercise.draw_cases(1)[0]
    gpu = VirtualWarp()
    src, dst = gpu.array("src", (64, 64)), gpu.array("dst", (64, 64))
    solution["transpose"](gpu, src, dst)
    program = gpu.program
    program[-1]["places"] = sorted(program[-1]["places"])
    with pytest.raises(Wrong):
        exercise.spec.compare(case, {"program": json.dumps(program)}, {"sectors": 1024})
    with pytest.raises(Wrong, match="not a program of a VirtualWarp"):
        exercise.spec.compare(case, {"program": "{"}, {"sectors": 1024})
