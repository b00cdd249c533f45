"""Ceilings are exact on a scripted clock, hold together on this machine, and last on disk as long as the device."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import replace

import pytest
import torch

from edl_labs.device import describe
from edl_labs.errors import EdlError, UsageError
from edl_labs.roofline import Ceiling, Machine, MemoryLevel, _ceilings, ceilings
from edl_labs.roofline.machine_ceilings import card
from edl_labs.roofline.microbenchmarks import compiled_streams, fastest_kernels
from edl_labs.roofline.microbenchmarks.kernels import (
    STREAMS,
    TimedKernel,
    Workers,
    best_of,
    block_rate,
    ceiling,
    measure_all,
    memory_kernels,
    product_kernel,
    tf32,
)

LARGEST_BYTES = _ceilings._largest_bytes  # the machine of this module measures with another one


class Scripted:
    """A clock that moves when kernels say so."""

    name, resolution_s, read_cost_s = "scripted", 1e-9, 0.0

    def __init__(self):
        self.time_s = 0.0

    def now_s(self):
        return self.time_s

    def synchronize(self):
        return None

    def kernel(self, name, amount, rate, *, slow=lambda n: 1.0):
        calls = iter(range(10**9))

        def run():
            self.time_s += amount / rate * slow(next(calls))

        return TimedKernel(name, amount, run)


def test_a_rate_is_amount_over_time():
    clock = Scripted()

    assert 5e9 == pytest.approx(block_rate(clock.kernel("k", 1e6, 5e9), clock))


def test_the_fastest_candidate_is_the_ceiling_and_none_is_an_error():
    clock = Scripted()
    kernels = [clock.kernel("slow", 1e6, 1e9), clock.kernel("fast", 1e6, 3e9)]

    kernel, rate = best_of(kernels, clock)

    assert ("fast", pytest.approx(3e9)) == (kernel.name, rate)
    with pytest.raises(EdlError):
        best_of([], clock)


def test_bursts_of_other_work_do_not_lower_a_ceiling():
    clock = Scripted()
    burst = clock.kernel("burst", 1e6, 1e9, slow=lambda n: 3.0 if n % 7 < 3 else 1.0)
    found = measure_all({"calm": clock.kernel("calm", 1e6, 2e9), "burst": burst}, clock, until_s=2.0)

    assert 2e9 == pytest.approx(found["calm"].rate)
    assert found["calm"].low <= found["calm"].rate <= found["calm"].high
    assert found["burst"].rate > 0.5e9


def test_measuring_ends_at_its_time():
    clock = Scripted()
    measure_all(
        {"noisy": clock.kernel("noisy", 1e6, 1e9, slow=lambda n: 1 + n % 5)}, clock, until_s=clock.now_s() + 0.5
    )

    assert clock.now_s() < 1.5


def test_a_ceiling_lies_inside_its_interval_and_holds_the_fastest_round():
    found = ceiling([1.0, 9.0, 10.0, 9.5, 9.8, 2.0, 9.9, 9.7])

    assert 9.8 <= found.rate <= found.high
    assert 10.0 <= found.high


def test_a_sweep_shows_its_steps_and_noise_is_none():
    flat = [(2**n, 100.0 + 5 * (n % 3)) for n in range(10)]
    stairs = [(2**n, 100.0 if n < 4 else 60.0 if n < 7 else 20.0) for n in range(10)]

    assert [] == fastest_kernels.steps(flat)
    assert [2**3, 2**6] == fastest_kernels.steps(stairs)


def cache(tmp_path, index, **facts):
    folder = tmp_path / "cpu0" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in facts.items():
        (folder / name).write_text(text)


def test_caches_are_read_as_the_system_tells_them(tmp_path):
    cache(tmp_path, 0, level="1", type="Data", size="32K", shared_cpu_list="0")
    cache(tmp_path, 1, level="1", type="Instruction", size="64K", shared_cpu_list="0")
    cache(tmp_path, 2, level="2", type="Unified", size="1024K", shared_cpu_list="0,8")
    cache(tmp_path, 3, level="3", type="Unified", size="32M", shared_cpu_list="0-7")

    assert [("L1", 4 * 32 << 10), ("L2", 2 << 20), ("LLC", 32 << 20)] == fastest_kernels.host_caches(
        4, root=str(tmp_path)
    )
    assert [] == fastest_kernels.host_caches(4, root=str(tmp_path / "nowhere"))


@pytest.mark.parametrize("pattern", STREAMS)
@pytest.mark.parametrize("size", [32 << 10, 1 << 20])
def test_memory_kernels_move_what_they_say_and_run(pattern, size):
    workers = Workers(2)
    try:
        for kernel in memory_kernels(pattern, size, device="cpu", workers=workers):
            kernel.run()
            assert kernel.amount >= 0.9 * size
    finally:
        workers.close()


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "int8"])
def test_products_are_of_random_values_and_count_their_flops(dtype):
    kernel = product_kernel(dtype, (32, 32, 32), device="cpu")

    assert 2 * 32**3 == kernel.amount
    assert 1 < len(torch.unique(kernel.run().float()))


def compiled(folder, monkeypatch):
    monkeypatch.setenv("EDL_LABS_CACHE", str(folder))
    compiled_streams._loaded.cache_clear()
    found = compiled_streams.compiled_streams()
    if found is None:
        pytest.skip("this machine has no C compiler: what is compiled cannot be tested here")
    return found


def test_compiled_streams_do_what_they_say_to_every_value(tmp_path, monkeypatch):
    streams = compiled(tmp_path, monkeypatch)
    for pattern, number, result in (("copy", 2, -1.0), ("triad", 3, 3.0)):
        run, moved = streams.job(pattern, number, 10_000)
        run()
        (memory,) = run.__defaults__
        held = int((memory == result).sum()) * 4

        assert 10_000 - 8 * streams.width_bytes < held <= 10_000
        assert 0 == moved % (number * held)
        assert 512 << 20 >= moved > 500 << 20

    run, moved = streams.job("read", 1, 3 << 20)
    run()
    assert 0.9 * (128 << 20) < moved <= 128 << 20


def test_a_built_library_is_kept_and_one_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    compiled(tmp_path, monkeypatch)
    (kept,) = tmp_path.glob("streams-*.so")
    first = kept.stat().st_mtime_ns
    compiled_streams._loaded.cache_clear()
    compiled(tmp_path, monkeypatch)

    assert first == kept.stat().st_mtime_ns
    kept.chmod(0o777)
    compiled_streams._loaded.cache_clear()
    compiled(tmp_path, monkeypatch)
    assert first != kept.stat().st_mtime_ns
    assert [kept] == [*tmp_path.iterdir()]


@pytest.mark.parametrize("flags", [("-no-such-flag",), ()])
def test_what_is_built_for_one_process_alone_leaves_nothing_behind(tmp_path, monkeypatch, flags):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "no folder").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(compiled_streams, "_FLAGS", (flags, ()))
    streams = compiled(tmp_path / "no folder" / "cache", monkeypatch)
    compiled_streams._loaded.cache_clear()
    run, _ = streams.job("copy", 2, 10_000)
    run()

    assert [] == [*(tmp_path / "scratch").iterdir()]


@pytest.mark.parametrize(
    ("mode", "owner", "safe"),
    [
        (0o700, 0, True),
        (0o755, 0, True),
        (0o775, 0, True),
        (0o777, 0, False),
        (0o1777, 0, True),
        (0o755, 7, False),
        (0o1777, 7, False),
    ],
)
def test_a_folder_is_safe_where_nobody_else_can_move_its_files(mode, owner, safe):
    uid = (os.getuid() or 1000) + owner if owner else os.getuid()

    assert safe == compiled_streams._is_safe(os.stat_result((0o40000 | mode, 0, 0, 2, uid, 0, 0, 0, 0, 0)))


def test_in_a_folder_that_anybody_may_change_nothing_is_kept_nor_taken(tmp_path, monkeypatch):
    compiled(tmp_path, monkeypatch)
    (kept,) = tmp_path.glob("streams-*.so")
    before = compiled_streams._is_ours(kept)
    tmp_path.chmod(0o777)

    assert (True, False) == (before, compiled_streams._is_ours(kept))
    kept.unlink()
    compiled(tmp_path, monkeypatch)
    compiled_streams._loaded.cache_clear()
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize("script", ["exit 1", "echo 1.0; exit 0", None])
def test_a_compiler_that_cannot_is_no_compiler(tmp_path, monkeypatch, script):
    if script is not None:
        (tmp_path / "cc").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("EDL_LABS_CACHE", str(tmp_path / "cache"))
    compiled_streams._loaded.cache_clear()

    assert compiled_streams.compiled_streams() is None
    compiled_streams._loaded.cache_clear()


def test_working_sets_lie_inside_each_cache_and_beyond_the_last():
    caches = [("L1", 64 << 10), ("L2", 2 << 20), ("LLC", 32 << 20)]
    chosen = fastest_kernels.working_sets(caches, smallest_bytes=32 << 10, largest_bytes=192 << 20)

    for name, _ in caches:
        low, high = fastest_kernels.within(caches, name)
        assert 1 <= sum(low <= size <= high for size in chosen) <= 3
    assert 1 == sum(size > 32 << 20 for size in chosen)
    assert len(chosen) <= 10 < len(fastest_kernels.working_sets([], smallest_bytes=32 << 10, largest_bytes=192 << 20))


def test_what_is_known_is_not_measured_again_while_others_are():
    clock, runs = Scripted(), {"calm": 0, "noisy": 0}

    def counted(name, slow):
        kernel = clock.kernel(name, 1e6, 1e9, slow=slow)
        return TimedKernel(name, 1e6, lambda: (runs.__setitem__(name, runs[name] + 1), kernel.run()))

    found = measure_all(
        {"calm": counted("calm", lambda n: 1.0), "noisy": counted("noisy", lambda n: 1 + n % 11)}, clock, until_s=1e9
    )

    assert 1e9 == pytest.approx(found["calm"].rate)
    assert 9 * 3 * 3 <= runs["calm"] < runs["noisy"] / 3


def test_a_search_of_products_begins_no_larger_shape_when_its_time_is_over(monkeypatch):
    clock = launched(monkeypatch, launch_s=1e-6)

    assert "2048" == fastest_kernels._product("fp32", "cuda", clock, until_s=0.0).name


def test_tf32_is_set_back():
    before = torch.backends.cuda.matmul.allow_tf32
    with tf32(allowed=not before):
        assert torch.backends.cuda.matmul.allow_tf32 is not before

    assert before == torch.backends.cuda.matmul.allow_tf32


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("EDL_LABS_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setattr(fastest_kernels, "_CPU_SIDES", (256,))
    patch.setattr(_ceilings, "_largest_bytes", lambda told, **_: 64 << 20)
    yield ceilings("cpu", budget_s=0.5, dtypes=["float32"])
    patch.undo()


def test_this_machine_holds_together(machine):
    assert "measured" == machine.origin
    assert math.inf == machine.memory.capacity_bytes
    assert machine.levels[0].capacity_bytes < machine.levels[-1].capacity_bytes
    for nearer, farther in zip(machine.levels, machine.levels[1:], strict=False):
        assert all(
            nearer.bandwidth[p].rate >= farther.bandwidth[p].rate for p in nearer.bandwidth if p in farther.bandwidth
        )
    assert set(STREAMS) == {pattern for pattern, _, _ in machine.sweep}
    assert ["fp32"] == list(machine.matmul)
    assert 0 < machine.latency_s < 1e-2
    assert "dense: no 2:4 sparsity" == machine.settings["sparsity"]


@pytest.fixture(scope="module")
def blind(tmp_path_factory):
    """This machine as it is measured where there is no compiler."""
    patch = pytest.MonkeyPatch()
    patch.setenv("EDL_LABS_CACHE", str(tmp_path_factory.mktemp("blind")))
    patch.setattr(compiled_streams, "COMPILERS", ())
    patch.setattr(fastest_kernels, "_CPU_SIDES", (256,))
    patch.setattr(_ceilings, "_largest_bytes", lambda told, **_: 64 << 20)
    found = ceilings("cpu", budget_s=0.5, dtypes=["float32"])
    patch.undo()
    return found


@pytest.mark.slow
def test_without_a_compiler_a_cores_own_caches_are_not_measured_rather_than_wrong(blind):
    rows = {row.name.partition(",")[0]: row for row in card(blind)}

    assert blind.unmeasured
    assert not {"L1", "L2", *blind.unmeasured} & {level.name for level in blind.levels}
    for name in blind.unmeasured:
        assert ("not measured", "–") == (rows[name].measured, rows[name].share)
        assert "no C compiler" in rows[name].note
    assert all(size > max(blind.unmeasured.values()) for _, size, _ in blind.sweep)
    assert blind.to_json() == Machine.from_json(json.loads(json.dumps(blind.to_json()))).to_json()


def test_a_card_that_was_taken_without_a_compiler_is_taken_again_once_there_is_one(blind, tmp_path, monkeypatch):
    monkeypatch.setenv("EDL_LABS_CACHE", str(tmp_path))
    monkeypatch.setattr(_ceilings, "DOUBTFUL", math.inf)
    monkeypatch.setattr(_ceilings, "_measured", lambda *_, **__: replace(blind, unmeasured={}))
    _ceilings._remember(_ceilings._cache_path(describe("cpu"), asked=("fp32",)), blind)
    monkeypatch.setattr(_ceilings, "compiled_streams", lambda: None)

    assert blind.unmeasured == ceilings("cpu", dtypes=["fp32"]).unmeasured
    monkeypatch.setattr(_ceilings, "compiled_streams", lambda: "loops")
    assert {} == ceilings("cpu", dtypes=["fp32"]).unmeasured


def test_with_a_compiler_every_cache_is_measured_by_compiled_loops(machine):
    if compiled_streams.compiled_streams() is None:
        pytest.skip("this machine has no C compiler: its nearest caches are not measured")

    assert {} == machine.unmeasured
    near = [level for level in machine.levels if level.name in ("L1", "L2")]
    # Where a farther level seemed quicker, its ceiling and the note that came with it stand for the nearer one.
    assert all(rate.note.startswith(("compiled", "torch")) for level in near for rate in level.bandwidth.values())


def test_a_measured_machine_is_read_again_and_measured_anew_when_asked(machine, monkeypatch):
    monkeypatch.setattr(_ceilings, "DOUBTFUL", math.inf)  # a busy machine's card is measured again by itself
    again = ceilings("cpu", budget_s=0.5, dtypes=["fp32"])

    assert machine.to_json() == again.to_json()
    assert machine.to_json() == Machine.from_json(json.loads(json.dumps(machine.to_json()))).to_json()


def test_another_driver_or_thread_count_is_another_machine(machine):
    here = _ceilings._cache_path(machine.stamp, asked=["fp32"])

    assert here == _ceilings._cache_path(machine.stamp, asked=["fp32"])
    assert here != _ceilings._cache_path(replace(machine.stamp, driver="999.1"), asked=["fp32"])
    assert here != _ceilings._cache_path(replace(machine.stamp, threads=64), asked=["fp32"])
    assert here != _ceilings._cache_path(machine.stamp, asked=["fp16"])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "machine"}', "null"])
def test_a_broken_file_is_measured_again_not_believed(tmp_path, text):
    path = tmp_path / "ceilings-x.json"
    path.write_text(text)

    assert _ceilings._remembered(path) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(machine, tmp_path):
    (tmp_path / "file").write_text("")
    _ceilings._remember(tmp_path / "file" / "ceilings.json", machine)

    assert _ceilings._remembered(tmp_path / "file" / "ceilings.json") is None


def test_the_card_says_each_ceiling_beside_the_datasheet(machine):
    rows = {row.name: row for row in card(Machine.of("H200"))}

    assert ("989 TFLOP/s", "989 TFLOP/s", "100 %") == (
        rows["bf16 products"].measured,
        rows["bf16 products"].datasheet,
        rows["bf16 products"].share,
    )
    assert "206 FLOP/B" == rows["ridge bf16"].measured
    assert {"–"} == {row.datasheet for row in card(machine)}
    assert "ridge fp32" in {row.name for row in card(machine)}


@pytest.mark.parametrize(
    "call",
    [
        lambda: ceilings("cuda:99") if not torch.cuda.is_available() else ceilings("tpu"),
        lambda: ceilings("cpu", dtypes=[]),
        lambda: ceilings("cpu", dtypes=["float80"]),
        lambda: ceilings("cpu", budget_s=0),
        lambda: ceilings("cpu", budget_s=1, dtypes=["fp8"], refresh=True),
    ],
)
def test_bad_input_is_told_what_why_and_next(call, monkeypatch):
    monkeypatch.setattr(fastest_kernels, "sweep", lambda *a, **k: {})
    with pytest.raises((EdlError, UsageError)) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))


def launched(monkeypatch, *, launch_s, fails_from=math.inf):
    """A device of 60 TFLOP/s on which each product waits `launch_s` first, and has no room from a size on."""
    clock = Scripted()

    def kernel(dtype, shape, *, device):
        if shape[0] >= fails_from:
            raise torch.OutOfMemoryError("CUDA out of memory")
        flops = 2.0 * math.prod(shape)
        return clock.kernel(f"{shape[0]}", flops, flops / (launch_s + flops / 60e12))

    monkeypatch.setattr(fastest_kernels, "product_kernel", kernel)
    return clock


@pytest.mark.parametrize("launch_us", [8, 10, 20])
def test_a_slow_launch_does_not_lower_the_peak_of_products(monkeypatch, launch_us):
    clock = launched(monkeypatch, launch_s=launch_us * 1e-6)

    assert 60e12 == pytest.approx(block_rate(fastest_kernels._product("fp32", "cuda", clock), clock), rel=0.01)


def test_a_shape_without_room_leaves_the_smaller_ones(monkeypatch):
    clock = launched(monkeypatch, launch_s=1e-6, fails_from=8192)

    assert "4096" == fastest_kernels._product("fp32", "cuda", clock).name


def test_a_dtype_that_no_real_shape_has_room_for_says_so(monkeypatch):
    clock = launched(monkeypatch, launch_s=1e-6, fails_from=2048)

    with pytest.raises(EdlError, match="out of memory"):
        fastest_kernels.fastest_products("cuda", ("fp32",), clock)


@pytest.mark.parametrize(
    ("remembered", "measured", "given", "times"), [(0.05, 0.02, 0.05, 0), (0.5, 0.02, 0.02, 1), (0.5, 0.9, 0.5, 1)]
)
def test_a_remembered_card_in_doubt_is_taken_again_once(tmp_path, monkeypatch, remembered, measured, given, times):
    def busy(half_width):
        peak = Ceiling(1e12, 1e12 * (1 - half_width), 1e12 * (1 + half_width))
        memory = MemoryLevel("DRAM", math.inf, {"read": Ceiling(1e10)})
        return Machine("busy", (memory,), {"fp32": peak}, origin="measured")

    taken = []
    monkeypatch.setenv("EDL_LABS_CACHE", str(tmp_path))
    monkeypatch.setattr(_ceilings, "_measured", lambda *_, **__: taken.append(1) or busy(measured))
    _ceilings._remember(_ceilings._cache_path(describe("cpu"), asked=("fp32",)), busy(remembered))
    found = [ceilings("cpu", dtypes=["fp32"]) for _ in range(3)]

    assert times == len(taken)
    assert [pytest.approx(given)] * 3 == [one.doubt for one in found]


@pytest.mark.parametrize(("half_width", "said"), [(0.03, "1 TFLOP/s ± 3 %"), (132.4, "1 TFLOP/s (disturbed)")])
def test_a_doubt_beyond_the_rate_itself_is_said_in_a_word(half_width, said):
    peak = Ceiling(1e12, 1e12 * (1 - half_width), 1e12 * (1 + half_width))
    memory = MemoryLevel("DRAM", math.inf, {"read": Ceiling(1e10)})
    rows = {row.name: row for row in card(Machine("busy", (memory,), {"fp32": peak}, origin="measured"))}

    assert [said] == [row.measured for name, row in rows.items() if "fp32" in name and "ridge" not in name]


@pytest.mark.parametrize(("quick", "largest"), [("", 6 * (260 << 20)), ("1", 128 << 20)])
def test_a_quick_run_holds_no_arrays_of_many_times_a_large_cache(monkeypatch, quick, largest):
    """On a server with 260 MiB of last cache, the arrays held at a time took 6.3 GB: twice a kernel's limit."""
    monkeypatch.setenv("EDL_LABS_QUICK", quick)

    assert largest == LARGEST_BYTES([("LLC", 260 << 20)])


@pytest.mark.parametrize(("room_gib", "largest_mib"), [(None, 1560), (64, 1560), (8, 1024), (1.5, 192), (0.1, 128)])
def test_working_sets_leave_half_of_a_small_session_free(monkeypatch, room_gib, largest_mib):
    """On a hub, a server of 2 GB runs on a machine whose last cache says nothing of that limit."""
    monkeypatch.delenv("EDL_LABS_QUICK", raising=False)
    room_bytes = None if room_gib is None else int(room_gib * 2**30)

    assert largest_mib << 20 == LARGEST_BYTES([("LLC", 260 << 20)], room_bytes=room_bytes)


@pytest.mark.parametrize(
    ("room_gib", "quick", "said"), [(64, "", ""), (1.5, "", "half of the free memory"), (64, "1", "a quick run")]
)
def test_a_sweep_that_ends_too_soon_says_so_on_the_card(monkeypatch, room_gib, quick, said):
    monkeypatch.setenv("EDL_LABS_QUICK", quick)
    told = [("LLC", 260 << 20)]
    cut = _ceilings._cut_short(told, LARGEST_BYTES(told, room_bytes=int(room_gib * 2**30)))
    rate = Ceiling(2e10, note="memcpy")
    machine = Machine(
        name="x", levels=(MemoryLevel("DRAM", math.inf, {"read": rate}),), matmul={"fp32": Ceiling(1e12)}, settings=cut
    )
    (row,) = (row for row in card(machine) if row.name.startswith("DRAM"))

    assert bool(said) == bool(cut)
    assert said in row.note
    assert row.note.startswith("memcpy")
