"""Origins of bytes: equal computations have equal origins, however they are cut; different ones do not."""

from __future__ import annotations

import pytest

from edl_labs.virtual import ReplayError, VirtualGPU, VirtualMachine, replay

MACHINE = VirtualMachine()
SIZE = 1000


def pipeline(chunk, *, shift=0, kernel="scale", elementwise=True, skip=None):
    """Copy in, compute, copy out, in chunks; with mistakes if asked for. Gives the origins of the output."""
    gpu = VirtualGPU(MACHINE)
    source, target = (gpu.host_empty(SIZE, pin_memory=True, name=name) for name in ("x", "y"))
    there = gpu.empty(SIZE)
    for number, start in enumerate(range(0, SIZE, chunk)):
        part = slice(start, min(start + chunk, SIZE))
        moved = slice(max(0, part.start - shift), max(0, part.start - shift) + part.stop - part.start)
        gpu.copy(there[part], source[moved], non_blocking=True)
        if number != skip:
            gpu.launch(kernel, duration_s=1e-6, reads=there[part], writes=there[part], elementwise=elementwise)
        gpu.copy(target[part], there[part], non_blocking=True)
    gpu.synchronize()
    return replay(gpu.program, MACHINE).contents(1)


@pytest.mark.parametrize("chunk", [1000, 500, 300, 7])
def test_an_elementwise_pipeline_has_one_origin_however_it_is_cut(chunk):
    (piece,) = pipeline(chunk)

    assert (0, SIZE, "scale(x)") == (piece.start, piece.stop, piece.text)
    assert pipeline(1000) == (piece,)


WRONG = {
    "another place": {"shift": 100},
    "another kernel": {"kernel": "relu"},
    "one chunk without the kernel": {"skip": 1},
    "not elementwise": {"elementwise": False},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_pipeline_that_computes_something_else_has_other_origins(wrong):
    assert pipeline(100) != pipeline(100, **wrong)


def test_a_kernel_over_everything_is_not_one_over_parts():
    assert pipeline(1000, elementwise=False) != pipeline(500, elementwise=False)
    assert pipeline(500, elementwise=False) == pipeline(500, elementwise=False)


def test_a_buffer_of_the_same_name_is_not_the_same_input():
    def copied(second):
        gpu = VirtualGPU(MACHINE)
        buffers = [gpu.host_empty(8, pin_memory=True, name=name) for name in ("x", "x", "y")]
        gpu.copy(buffers[2], buffers[int(second)])
        return replay(gpu.program, MACHINE).contents(2)

    assert copied(False) != copied(True)


def test_origins_follow_the_last_write_and_keep_what_it_left():
    gpu = VirtualGPU(MACHINE)
    x, y, out = (gpu.host_empty(10, name=name) for name in ("x", "y", "out"))
    gpu.copy(out, x)
    gpu.copy(out[3:6], y[0:3])
    pieces = replay(gpu.program, MACHINE).contents(2)

    assert [(0, 3, "x"), (3, 6, "y"), (6, 10, "x")] == [(piece.start, piece.stop, piece.text) for piece in pieces]
    assert pieces[0].origin == pieces[2].origin


def test_two_inputs_and_a_swap_of_them_differ():
    def added(first, second):
        gpu = VirtualGPU(MACHINE)
        buffers = {name: gpu.empty(8, name=name) for name in ("a", "b", "c")}
        reads = (buffers[first], buffers[second])
        gpu.launch("sub", duration_s=0.0, reads=reads, writes=buffers["c"], elementwise=True)
        return replay(gpu.program, MACHINE).contents(2)

    assert added("a", "b") != added("b", "a")
    assert "sub(a, b)" == added("a", "b")[0].text


def test_long_chains_and_doubling_are_followed_in_bounded_time():
    gpu = VirtualGPU(MACHINE)
    x = gpu.empty(8, name="x")
    for _ in range(3000):
        gpu.launch("double", duration_s=0.0, reads=(x, x), writes=x, elementwise=True)
    (piece,) = replay(gpu.program, MACHINE).contents(0)

    assert len(piece.text) <= 200


def test_what_the_host_computes_has_an_origin_too():
    gpu = VirtualGPU(MACHINE)
    x, y = gpu.host_empty(8, name="x"), gpu.host_empty(8, name="y")
    gpu.host_work(0.0, reads=x, writes=y)

    assert "host(x)" == replay(gpu.program, MACHINE).contents(1)[0].text


def test_a_buffer_that_is_not_there_is_refused():
    with pytest.raises(ReplayError):
        replay([], MACHINE).contents(0)


@pytest.mark.slow
def test_too_many_parts_are_refused():
    gpu = VirtualGPU(MACHINE)
    x, y = gpu.empty(8000), gpu.empty(8000)
    for at in range(2000):
        gpu.launch("w", duration_s=0.0, writes=x[2 * at : 2 * at + 1])
    for _ in range(1000):
        gpu.copy(y, x)
    with pytest.raises(ReplayError) as caught:
        replay(gpu.program, MACHINE).contents(1)

    assert "too many parts" in caught.value.what
