"""VirtualWarp: divergence, barriers, races, values and where they come from, shuffles, and what a kernel may not do."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from edl_labs.virtual import ReplayError
from edl_labs.virtual.errors import VirtualWarpError
from edl_labs.virtual.warp import VirtualWarp, WarpReplay, replay_warp


def run_of(kernel, *sizes, grid=1, block=32, **options):
    """The replay of one launch over arrays a, b, ... of these shapes."""
    gpu = VirtualWarp()
    arrays = [gpu.array(name, shape) for name, shape in zip("abcd", sizes, strict=False)]
    gpu.launch(kernel, *arrays, grid=grid, block=block)
    return gpu.replay(**options)


def transposed(cuda, src, dst, *, width=33, has_barrier=True):
    tile = cuda.shared.array((32, width))
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = src[32 * cuda.blockIdx.y + y, 32 * cuda.blockIdx.x + x]
    if has_barrier:
        cuda.syncthreads()
    dst[32 * cuda.blockIdx.x + y, 32 * cuda.blockIdx.y + x] = tile[x, y]


def test_a_transposition_through_shared_memory_by_hand():
    run = run_of(transposed, (64, 32), (32, 64), grid=(1, 2), block=(32, 32))

    assert 2 * 64 * 32 * 4 // 32 == run.sectors
    assert (0, (), (), ()) == (run.bank_conflicts, run.races, run.hangs, run.undefined)
    assert [("a", row * 32 + column) for column in range(32) for row in range(64)] == run.contents("b")
    assert np.array_equal(np.arange(2048).reshape(64, 32).T, run.values("b"))
    # Two loads, two stores and a barrier of 64 warps.
    assert (5 * 64, 1.0, (5,) * 64) == (run.instructions, run.active_share, run.issued_by_warp)


def test_without_padding_each_request_takes_32_turns():
    run = run_of(lambda *given: transposed(*given, width=32), (32, 32), (32, 32), block=(32, 32))

    assert 31 * 32 == run.bank_conflicts


def test_a_missing_barrier_is_a_race_though_values_may_be_right():
    run = run_of(lambda *given: transposed(*given, has_barrier=False), (32, 32), (32, 32), block=(32, 32))

    assert run.races
    assert run.races[0].is_shared
    assert "and nothing puts these accesses in order" in str(run.races[0])
    assert run.undefined  # here a warp reads what the next one has yet to write


def test_threads_of_a_warp_race_too_and_syncwarp_orders_them():
    def turned(cuda, a, *, orders):
        tile = cuda.shared.array(32)
        tile[cuda.threadIdx.x] = a[cuda.threadIdx.x]
        if orders:
            cuda.syncwarp()
        a[cuda.threadIdx.x] = tile[31 - cuda.threadIdx.x]

    assert run_of(lambda *given: turned(*given, orders=False), 32).races
    # The values are right by luck: the warp went in step.
    assert [("a", 31 - lane) for lane in range(32)] == run_of(lambda *g: turned(*g, orders=False), 32).contents("a")
    assert () == run_of(lambda *given: turned(*given, orders=True), 32).races


def test_syncwarp_orders_no_other_warp():
    def turned(cuda, a):
        tile = cuda.shared.array(64)
        tile[cuda.threadIdx.x] = a[cuda.threadIdx.x]
        cuda.syncwarp()
        a[cuda.threadIdx.x] = tile[63 - cuda.threadIdx.x]

    assert run_of(turned, 64, block=64).races


def test_a_second_barrier_is_needed_before_a_tile_is_written_again():
    def summed(cuda, a, b, *, second):
        tile, own = cuda.shared.array(64), 0.0
        for part in range(2):
            tile[cuda.threadIdx.x] = a[64 * part + cuda.threadIdx.x]
            cuda.syncthreads()
            own = own + tile[63 - cuda.threadIdx.x]
            if second:
                cuda.syncthreads()
        b[cuda.threadIdx.x] = own

    assert run_of(lambda *given: summed(*given, second=False), 128, 64, block=64).races
    run = run_of(lambda *given: summed(*given, second=True), 128, 64, block=64)
    assert () == run.races
    assert {("constant", 0.0): 1, ("a", 63): 1, ("a", 127): 1} == run.leaves(run.origins("b")[0])


def test_blocks_race_at_one_element_unless_all_of_them_add():
    def stores(cuda, a):
        a[0] = 1.0

    def adds(cuda, a):
        cuda.atomic.add(a, 0, 1.0)

    def adds_and_reads(cuda, a):
        cuda.atomic.add(a, 0, 1.0)
        a[0]

    assert [True, False, True] == [
        bool(run_of(one, 1, grid=2, block=1).races) for one in (stores, adds, adds_and_reads)
    ]


def test_a_launch_orders_what_the_one_before_it_did():
    def copied(cuda, src, dst):
        dst[cuda.grid(1)] = src[127 - cuda.grid(1)]

    gpu = VirtualWarp()
    a, b, c = (gpu.array(name, 128) for name in "abc")
    gpu.launch(copied, a, b, grid=4, block=32)
    gpu.launch(copied, b, c, grid=4, block=32)
    run = gpu.replay()

    assert () == run.races
    assert [("a", place) for place in range(128)] == run.contents("c")
    assert 2 == run.launches


@pytest.mark.parametrize(
    ("condition", "issued", "share"),
    [
        (lambda x: True, 2, 1.0),
        (lambda x: x % 2 == 0, 4, 0.5),
        (lambda x: x < 16, 4, 0.5),
        (lambda x: x < 8, 4, 0.5),
    ],
)
def test_a_warp_issues_both_sides_of_a_branch(condition, issued, share):
    def kernel(cuda, a, b):
        x = cuda.threadIdx.x
        if condition(x):
            b[x] = a[x]
        else:
            a[x] = b[x]

    run = run_of(kernel, 32, 32)

    assert (issued, share) == (run.instructions, run.active_share)


def test_a_branch_between_warps_costs_nothing():
    def kernel(cuda, a, b):
        x = cuda.threadIdx.x
        if x < 32:
            b[x] = a[x]
        else:
            a[x] = b[x]

    assert (2, 2) == run_of(kernel, 64, 64, block=64).issued_by_warp


def test_lanes_meet_again_behind_a_branch_and_behind_a_loop():
    def kernel(cuda, a, b):
        x = cuda.threadIdx.x
        for turn in range(x % 4):
            a[turn]
        if x % 2:
            a[x]
        b[x] = 0.0

    run = run_of(kernel, 32, 32)
    assert [(3, 24), (1, 16), (1, 32)] == [
        (len(mine), max(len(one.lanes) for one in mine))
        for line in (4, 6, 7)
        for mine in [[one for one in run.requests if one.line == line]]
    ]


def test_a_helper_called_from_two_places_is_two_places():
    def at(a, x):
        return a[x]

    def kernel(cuda, a, b):
        if cuda.threadIdx.x < 16:
            b[cuda.threadIdx.x] = at(a, 0)
        else:
            b[cuda.threadIdx.x] = at(a, 1)

    assert 4 == run_of(kernel, 32, 32).instructions


def test_threads_that_have_ended_are_not_waited_for():
    def kernel(cuda, a):
        if cuda.threadIdx.x >= 40:
            return
        a[cuda.threadIdx.x] = 1.0
        cuda.syncthreads()
        a[39 - cuda.threadIdx.x]

    run = run_of(kernel, 64, block=64)

    assert ((), ()) == (run.hangs, run.races)
    assert ("block 0 of launch 0: 40 of 64 threads reach the barrier in line 5",) == run.missed


def test_a_barrier_of_whole_blocks_is_missed_by_nobody():
    def kernel(cuda, a):
        if cuda.threadIdx.x < 40:
            a[cuda.threadIdx.x] = 1.0
        cuda.syncthreads()

    assert () == run_of(kernel, 64, block=64).missed


def test_a_barrier_inside_the_branch_of_a_tree_is_missed_by_the_others():
    def kernel(cuda, a):
        half = 16
        while half:
            if cuda.threadIdx.x < half:
                cuda.syncthreads()
            half //= 2

    run = run_of(kernel, 1)

    assert () == run.hangs
    assert [16, 8, 4, 2, 1] == [int(one.split(": ")[1].split()[0]) for one in run.missed]


def test_two_places_of_a_barrier_are_a_hang():
    def kernel(cuda, a):
        if cuda.threadIdx.x < 32:
            cuda.syncthreads()
        else:
            cuda.syncthreads()

    (hang,) = run_of(kernel, 1, block=64).hangs
    assert "64 threads wait forever, in different calls of syncthreads, in lines 3, 5" in hang


def test_a_shuffle_in_half_of_a_warp_while_the_other_waits_is_a_hang():
    def kernel(cuda, a):
        if cuda.threadIdx.x < 16:
            cuda.shfl_down_sync(0xFFFFFFFF, a[0], 1)
        else:
            cuda.syncthreads()

    assert "others in shfl_down" in run_of(kernel, 1).hangs[0]


def test_a_warp_adds_up_by_shuffles():
    def kernel(cuda, a, b):
        own = a[cuda.threadIdx.x]
        for step in (16, 8, 4, 2, 1):
            own = own + cuda.shfl_down_sync(0xFFFFFFFF, own, step)
        if cuda.laneid == 0:
            b[0] = own

    run = run_of(kernel, 32, 1)
    (origin,) = run.origins("b")

    assert {("a", lane): 1 for lane in range(32)} == run.leaves(origin)
    assert (5, {"+"}, 496.0) == (run.depth(origin), run.operations(origin), run.values("b")[0])
    assert 1 + 2 * 5 + 1 == run.instructions


def test_shuffles_give_what_they_say():
    def kernel(cuda, a, b):
        x = cuda.threadIdx.x
        own = a[x]
        b[0, x] = cuda.shfl_sync(0xFFFFFFFF, own, 7)
        b[1, x] = cuda.shfl_down_sync(0xFFFFFFFF, own, 30)
        b[2, x] = cuda.shfl_xor_sync(0xFFFFFFFF, own, 3)

    given, down, crossed = run_of(kernel, 32, (3, 32)).values("b")
    assert [7.0] * 32 == given.tolist()
    assert [30, 31, *range(2, 32)] == down.tolist()
    assert [lane ^ 3 for lane in range(32)] == crossed.tolist()


def test_arithmetic_is_that_of_the_dtype():
    def kernel(cuda, a, b):
        b[0] = (a[0] + a[1]) * 2 - 1 / a[1]

    gpu = VirtualWarp()
    a, b = gpu.array("a", 2, "float16"), gpu.array("b", 1, "float16")
    gpu.launch(kernel, a, b, grid=1, block=1)

    # 2051 is rounded to 2052 on the way; in float32 it would be 4101.67.
    assert 4104 == gpu.replay({"a": [2048, 3]}).values("b")[0]
    assert {"+", "-", "*", "/"} == gpu.replay().operations(gpu.replay().origins("b")[0])


def test_arrivals_are_drawn_and_the_same_for_one_seed():
    def kernel(cuda, a, b):
        cuda.atomic.add(b, 0, a[cuda.grid(1)])

    values = {"a": [1e8, 1.0, -1e8, 1.0, 3.0, 1e-3, 7.0, 0.1], "b": [0.0]}
    gpu = VirtualWarp()
    gpu.launch(kernel, gpu.array("a", 8), gpu.array("b", 1), grid=8, block=1)
    sums = [gpu.replay(values, arrival_seed=seed).values("b")[0] for seed in range(20)]

    assert len(set(sums)) > 2
    assert sums == [gpu.replay(values, arrival_seed=seed).values("b")[0] for seed in range(20)]


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (lambda cuda, a: a[32], r"thread 0 of block 0 reads a\[32\], which does not exist"),
        (lambda cuda, a: a[cuda.threadIdx.x - 1], r"reads a\[-1\]"),
        (lambda cuda, a: a[0, 0], "with 2 index"),
        (lambda cuda, a: a[1.5], "reads a at 1.5"),
        (lambda cuda, a: a[True], "reads a at True"),
        (lambda cuda, a: a[0:2], "reads a at a slice"),
        (lambda cuda, a: a[a[0]], "needs the value of an element that it loaded"),
        (lambda cuda, a: a[0] > 1 or a[1], "needs the value"),
        (lambda cuda, a: sum(a), "iterates over all of a"),
        (lambda cuda, a: a.__setitem__(0, "one"), "stores or computes with 'one'"),
        (lambda cuda, a: cuda.shared.array(20_000), "shared arrays have 80,000 bytes"),
        (lambda cuda, a: cuda.shared.array(cuda.threadIdx.x + 1), "but other threads declare"),
        (lambda cuda, a: cuda.shared.array(4, "float23"), "there is no dtype 'float23'"),
        (lambda cuda, a: cuda.syncwarp(1), "only a part of its warp"),
        (lambda cuda, a: cuda.shfl_sync(0xFFFFFFFF, a[0], 32), "shuffles with lane 32"),
    ],
)
def test_what_a_kernel_may_not_do_is_told(kernel, said):
    with pytest.raises(VirtualWarpError, match=said):
        run_of(kernel, 32)


def test_values_stay_with_their_thread():
    kept = []

    def kernel(cuda, a):
        kept.append(a[cuda.threadIdx.x])
        a[cuda.threadIdx.x] = kept[0]

    with pytest.raises(VirtualWarpError, match="thread 1 of block 0 uses a value that thread 0 of block 0 loaded"):
        run_of(kernel, 32)


def test_an_endless_kernel_ends():
    def kernel(cuda, a):
        while True:
            a[0]

    with pytest.raises(VirtualWarpError, match="more than 300,000 steps"):
        run_of(kernel, 1)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"grid": 0, "block": 32}, "grid is 0"),
        ({"grid": 1, "block": 1025}, "a block cannot have"),
        ({"grid": 1.0, "block": 32}, "grid is 1.0"),
        ({"grid": 1 << 12, "block": 1024}, "a grid cannot have"),
    ],
)
def test_a_launch_that_cannot_be_is_told(sizes, said):
    with pytest.raises(VirtualWarpError, match=said):
        run_of(lambda cuda, a: None, 1, **sizes)


def test_an_array_outside_of_a_kernel_holds_nothing():
    with pytest.raises(VirtualWarpError, match="is read outside a kernel"):
        VirtualWarp().array("a", 4)[0]


def test_names_of_cuda_say_where_a_thread_is():
    seen = []

    def kernel(cuda):
        seen.append((cuda.grid(2), cuda.gridsize(1), cuda.laneid, cuda.warpsize, tuple(cuda.gridDim)))

    run_of(kernel, grid=(2, 1), block=(3, 20))
    assert 120 == len(seen)
    assert ((5, 19), 6, (2 + 3 * 19) % 32, 32, (2, 1, 1)) == seen[-1]


def recorded():
    gpu = VirtualWarp()
    gpu.launch(transposed, gpu.array("a", (32, 32)), gpu.array("b", (32, 32)), grid=1, block=(32, 32))
    return gpu.program


def test_a_program_travels_as_text():
    program = recorded()

    assert replay_warp(program).requests == replay_warp(json.loads(json.dumps(program))).requests
    assert replay_warp(program) == WarpReplay.from_json(replay_warp(program).to_json())


def changed(program, at, **fields):
    again = copy.deepcopy(program)
    again[at].update(fields)
    return again


def path_with(program, number, step):
    again = copy.deepcopy(program)
    again[2]["paths"][0][number] = step
    return again


@pytest.mark.parametrize(
    "forged",
    [
        lambda p: None,
        lambda p: [*p, 7],
        lambda p: [*p, {"op": "peek"}],
        lambda p: changed(p, 0, name="b")[:2],
        lambda p: changed(p, 0, shape=[0, 4]),
        lambda p: changed(p, 0, shape=[1 << 40]),
        lambda p: changed(p, 0, dtype="float128"),
        lambda p: changed(p, 0, offset_bytes=2),
        lambda p: changed(p, 0, more=1),
        lambda p: changed(p, 2, grid=[2, 1, 1]),
        lambda p: changed(p, 2, block=[32, 33, 1]),
        lambda p: changed(p, 2, threads=[0] * 1023),
        lambda p: changed(p, 2, threads=[1] * 1024),
        lambda p: changed(p, 2, places=p[2]["places"][1:]),
        lambda p: changed(p, 2, places=[1024, *p[2]["places"][1:]]),
        lambda p: changed(p, 2, places=[True, *p[2]["places"][1:]]),
        lambda p: changed(p, 2, shared=[[[200, 200], "float32"]]),
        lambda p: changed(p, 2, lines=["x"]),
        lambda p: path_with(p, 0, ["load", 0, 2]),
        lambda p: path_with(p, 0, ["load", 99, 0]),
        lambda p: path_with(p, 0, ["load", 0]),
        lambda p: path_with(p, 1, ["store", 1, -1, 1]),  # a value that the thread does not have yet
        lambda p: path_with(p, 1, ["store", 1, -1, True]),
        lambda p: path_with(p, 1, ["store", 1, -2, 0]),
        lambda p: path_with(p, 1, ["shfl", 1, 32, 0]),
    ],
)
def test_what_no_kernel_recorded_is_refused(forged):
    with pytest.raises(ReplayError):
        replay_warp(forged(recorded()))


def test_a_program_that_is_too_long_is_refused():
    with pytest.raises(ReplayError, match="more than 100 operations"):
        replay_warp(recorded(), max_operations=100)


def test_sums_of_themselves_are_counted_without_going_through_all_of_them():
    def kernel(cuda, a):
        own = a[0]
        for _ in range(200):
            own = own + own
        a[0] = own

    run = run_of(kernel, 1, block=1)
    assert {("a", 0): 2**200} == run.leaves(run.origins("a")[0])
