"""Sectors, lines and wavefronts, counted by hand: strides, offsets, wide elements, broadcasts, padding, atomics."""

from __future__ import annotations

import pytest

from edl_labs.virtual.warp import VirtualWarp


def of_one_warp(touch, *, dtype="float32", elements=4096, offset_bytes=0, threads=32):
    """The replay of one warp whose threads load `src` where `touch(lane)` says; None: not at all."""

    def kernel(cuda, src):
        place = touch(cuda.threadIdx.x)
        if place is not None:
            src[place]

    gpu = VirtualWarp()
    src = gpu.array("src", elements, dtype, offset_bytes=offset_bytes)
    gpu.launch(kernel, src, grid=1, block=threads)
    return gpu.replay()


@pytest.mark.parametrize(
    ("touch", "sectors", "least", "lines"),
    [
        (lambda lane: lane, 4, 4, 1),
        (lambda lane: 31 - lane, 4, 4, 1),
        (lambda lane: lane ^ 5, 4, 4, 1),
        (lambda lane: 2 * lane, 8, 4, 2),
        (lambda lane: 8 * lane, 32, 4, 8),
        (lambda lane: 32 * lane, 32, 4, 32),
        (lambda lane: lane + 1, 5, 4, 2),
        (lambda lane: lane + 8, 4, 4, 2),
        (lambda lane: lane + 28, 5, 4, 2),
        (lambda lane: 0, 1, 1, 1),
        (lambda lane: lane // 8, 1, 1, 1),
        (lambda lane: lane % 8, 1, 1, 1),
        (lambda lane: lane if lane < 16 else None, 2, 2, 1),
        (lambda lane: 100 if lane == 3 else None, 1, 1, 1),
    ],
)
def test_sectors_and_lines_of_a_request_of_four_byte_elements(touch, sectors, least, lines):
    (request,) = of_one_warp(touch).requests

    assert (sectors, least, lines) == (request.sectors, request.least_sectors, request.lines)


@pytest.mark.parametrize(
    ("dtype", "sectors", "lines"),
    [("int8", 1, 1), ("float16", 2, 1), ("float32", 4, 1), ("float64", 8, 2), ("float2", 8, 2), ("float4", 16, 4)],
)
def test_neighbours_of_every_size_fill_their_sectors(dtype, sectors, lines):
    (request,) = of_one_warp(lambda lane: lane, dtype=dtype).requests

    assert (sectors, sectors, lines) == (request.sectors, request.least_sectors, request.lines)


@pytest.mark.parametrize(
    ("dtype", "offset", "sectors"), [("float32", 4, 5), ("float32", 32, 4), ("float16", 2, 3), ("float4", 16, 17)]
)
def test_an_array_that_begins_between_sectors_costs_one_more(dtype, offset, sectors):
    (request,) = of_one_warp(lambda lane: lane, dtype=dtype, offset_bytes=offset).requests

    assert sectors == request.sectors


def test_arrays_lie_one_after_the_other_at_multiples_of_256():
    def kernel(cuda, a, b):
        a[0]
        b[0]

    gpu = VirtualWarp()
    gpu.launch(kernel, gpu.array("a", 65), gpu.array("b", 1, offset_bytes=12), grid=1, block=1)

    assert [(0,), (512 + 12,)] == [request.addresses for request in gpu.replay().requests]


def in_shared(touch, *, dtype="float32", width=32, threads=32):
    """The wavefronts and the least of them of one warp that loads shared[touch(lane)], and what is there."""

    def kernel(cuda):
        tile = cuda.shared.array((40, width) if width > 1 else 1320, dtype)
        tile[touch(cuda.threadIdx.x)]

    gpu = VirtualWarp()
    gpu.launch(kernel, grid=1, block=threads)
    (request,) = gpu.replay().requests
    return request.wavefronts, request.least_wavefronts


@pytest.mark.parametrize(
    ("touch", "width", "wavefronts"),
    [
        (lambda lane: (0, lane), 32, 1),
        (lambda lane: (lane, 0), 32, 32),
        (lambda lane: (lane, 0), 33, 1),
        (lambda lane: (lane, 0), 34, 2),
        (lambda lane: (lane, 0), 36, 4),
        (lambda lane: (lane, 0), 40, 8),
        (lambda lane: (lane, lane), 32, 1),
        (lambda lane: (0, 0), 32, 1),
        (lambda lane: (lane // 16, 0), 32, 2),
        (lambda lane: (lane % 2, lane // 2), 32, 2),
        (lambda lane: (lane // 2, lane % 2), 32, 16),
    ],
)
def test_wavefronts_are_the_words_of_the_fullest_bank(touch, width, wavefronts):
    assert (wavefronts, 1) == in_shared(touch, width=width)


@pytest.mark.parametrize(
    ("dtype", "touch", "wavefronts", "least"),
    [
        ("float16", lambda lane: lane, 1, 1),  # two lanes a word
        ("float16", lambda lane: 2 * lane, 1, 1),
        ("float16", lambda lane: 64 * lane % 1280, 20, 1),
        ("int8", lambda lane: lane, 1, 1),
        ("float64", lambda lane: lane, 2, 2),  # half-warps of 128 bytes each
        ("float64", lambda lane: 2 * lane, 4, 2),
        ("float64", lambda lane: 16 * lane, 32, 2),
        ("float64", lambda lane: 17 * lane, 2, 2),
        ("float64", lambda lane: 0, 2, 2),
        ("float4", lambda lane: lane, 4, 4),  # quarters of 128 bytes each
        ("float4", lambda lane: 8 * lane, 32, 4),
        ("float4", lambda lane: 9 * lane, 4, 4),
        ("float4", lambda lane: lane // 8, 4, 4),
    ],
)
def test_wide_elements_go_part_by_part(dtype, touch, wavefronts, least):
    assert (wavefronts, least) == in_shared(touch, dtype=dtype, width=1)


def test_half_a_warp_of_wide_elements_takes_one_part():
    def kernel(cuda):
        tile = cuda.shared.array(64, "float64")
        if cuda.threadIdx.x < 16:
            tile[cuda.threadIdx.x]

    gpu = VirtualWarp()
    gpu.launch(kernel, grid=1, block=32)

    assert [(1, 1)] == [(one.wavefronts, one.least_wavefronts) for one in gpu.replay().requests]


def test_atomics_at_one_address_wait_for_each_other():
    def kernel(cuda, out):
        cuda.atomic.add(out, cuda.threadIdx.x % 4, 1.0)

    gpu = VirtualWarp()
    gpu.launch(kernel, gpu.array("out", 4), grid=1, block=32)
    (request,) = gpu.replay().requests

    assert 1 == request.sectors
    assert [8, 9, 10, 11] == gpu.replay({"out": [0, 1, 2, 3]}).values("out").tolist()


def test_every_warp_and_every_turn_of_a_loop_is_a_request_and_the_report_sums_them_up():
    def kernel(cuda, src):
        for row in range(4):
            src[row, cuda.threadIdx.x]
            src[cuda.threadIdx.x, row]

    gpu = VirtualWarp()
    gpu.launch(kernel, gpu.array("src", (64, 64)), grid=1, block=64)
    run = gpu.replay()

    assert [(8, 32, 32), (8, 256, 32)] == [(one.requests, one.sectors, one.least_sectors) for one in run.accesses]
    assert [
        "line 3: load of src, 8 requests, sectors per request 4, best 4",
        "line 4: load of src, 8 requests, sectors per request 32, best 4",
    ] == str(run).splitlines()
    assert 288 == run.sectors
