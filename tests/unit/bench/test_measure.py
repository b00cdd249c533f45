"""Measuring on scripted clocks: bias, coarse and costly clocks, devices, absurd functions, and the state afterwards."""

from __future__ import annotations

import gc
import json
import math
import time
from statistics import median

import pytest
from scripted_clock import DeviceClock, Noise, ScriptedClock, payload, ticked

from edl_labs.bench import FunctionFailed, Measurement, State, measure
from edl_labs.clock import HostClock
from edl_labs.device import QUICK
from edl_labs.errors import UsageError


@pytest.mark.parametrize("cost_s", [1e-6, 2.3e-5, 1e-3, 3e-2])
@pytest.mark.parametrize("read_s", [0.0, 5e-8, 1e-5])
def test_the_cost_of_reading_the_clock_is_not_in_the_time(cost_s, read_s):
    clock = ScriptedClock(cost_s=read_s)
    m = measure(payload(clock, cost_s), clock=clock)

    assert cost_s == pytest.approx(m.median_s, rel=1e-6)
    assert m.low_s <= m.median_s <= m.high_s


def test_a_clock_that_costs_ten_microseconds_still_gives_many_replicates():
    clock = ScriptedClock(cost_s=1e-5)
    noise = Noise("bursts", 1)
    m = measure(payload(clock, 3e-4, noise=noise), clock=clock, budget_s=0.2)

    assert m.blocks >= 20


@pytest.mark.parametrize(("step_s", "cost_s"), [(1e-6, 3e-6), (1e-3, 1e-6), (1e-3, 4e-3), (0.0156, 1e-3)])
def test_the_interval_allows_for_a_coarse_clock(step_s, cost_s):
    clock = ScriptedClock(step_s=step_s, cost_s=1e-7)
    m = measure(payload(clock, cost_s), clock=clock, budget_s=2.0)

    assert m.low_s * (1 - 1e-9) <= cost_s <= m.high_s * (1 + 1e-9)
    assert cost_s == pytest.approx(m.median_s, rel=0.1)


@pytest.mark.parametrize(("work_s", "want_s"), [(1e-6, 2e-6), (5e-6, 5e-6), (2e-5, 2e-5), (5e-4, 5e-4)])
def test_a_device_is_timed_in_the_steady_state(work_s, want_s):
    """The slower of launching and computing, without launch latency and without the wait for the device."""
    clock = DeviceClock(cost_s=6e-8)
    m = measure(lambda: clock.queue(work_s), clock=clock)

    assert want_s == pytest.approx(m.median_s, rel=0.01)


@pytest.mark.parametrize("shape", Noise.SHAPES)
def test_noise_of_every_shape_leaves_the_median_where_it_belongs(shape):
    clock = ScriptedClock(cost_s=5e-8)
    m = measure(payload(clock, 5e-5, noise=Noise(shape, 3)), clock=clock)

    assert 0.85 * 5e-5 < m.median_s < 1.5 * 5e-5
    assert 0 < m.half_width < 0.5


@pytest.mark.parametrize("cost_s", [1e-6, 5e-5, 4e-4])
@pytest.mark.parametrize("budget_s", [0.1, 0.4])
def test_the_time_holds_its_share_of_timer_ticks(cost_s, budget_s):
    """Ticks take 2.5 % of a long run. Most short blocks hold none, so that their median would miss that share."""
    clock = ScriptedClock(cost_s=5e-8)
    m = measure(ticked(clock, cost_s), clock=clock, budget_s=budget_s, detect=False)

    assert 1.025 * cost_s == pytest.approx(m.median_s, rel=0.004)


@pytest.mark.parametrize("cost_s", [1e-6, 1e-4, 0.01])
def test_the_budget_is_kept(cost_s):
    clock = ScriptedClock(cost_s=5e-8)
    measure(payload(clock, cost_s, noise=Noise("mixed", 4)), clock=clock, budget_s=0.3)

    assert clock.t <= 1.15 * 0.3


def test_a_call_longer_than_the_budget_gives_one_number_without_an_interval():
    clock = ScriptedClock()
    m = measure(payload(clock, 60.0), clock=clock, budget_s=0.4, detect=False)

    assert (60.0, 0.0, math.inf, 1) == (m.median_s, m.low_s, m.high_s, m.blocks)
    assert 60.0 == clock.t
    assert "one call, cold" in m.notes[0]
    assert "(no interval) (one call, cold)" in repr(m)
    with pytest.warns(UserWarning, match="one call, cold, so this is not the time of a warm call"):
        assert 60.0 == float(m)


@pytest.mark.slow
def test_a_function_that_takes_no_time_is_bounded_by_the_clock():
    clock = ScriptedClock(step_s=1e-6)
    m = measure(lambda: None, clock=clock)

    assert 0.0 == m.low_s
    assert m.high_s >= m.median_s
    assert any("only within bounds" in note for note in m.notes)


def test_a_function_that_gets_slower_gets_a_wide_interval_and_a_note():
    clock, calls = ScriptedClock(), iter(range(1, 10**9))

    def grows():
        clock.t += 1e-4 * next(calls)

    m = measure(grows, clock=clock, budget_s=1.0, detect=False)

    assert m.half_width > 0.02
    assert any("calls got slower during the measurement" in note for note in m.notes)


@pytest.mark.parametrize("budget_s", [0, -1, math.nan, math.inf, "1", True, None])
def test_a_budget_that_is_no_time_is_refused(budget_s):
    with pytest.raises(UsageError, match="budget"):
        measure(lambda: None, budget_s=budget_s)


def test_a_function_that_raises_is_named_with_its_reason():
    def broken():
        raise ValueError("no such shape")

    with pytest.raises(FunctionFailed, match="broken raised ValueError: no such shape") as caught:
        measure(broken)

    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("detect", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("after", [0, 2, 500])
def test_an_interruption_leaves_the_collector_as_it_was(error, after, detect):
    clock, calls = ScriptedClock(cost_s=1e-7), iter(range(10**9))

    def stops():
        clock.t += 1e-5
        if next(calls) >= after:
            raise error

    with pytest.raises((error, FunctionFailed)):
        measure(stops, clock=clock, detect=detect)

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    clock, seen = ScriptedClock(cost_s=1e-7), []
    gc.disable()
    try:
        measure(lambda: (seen.append(gc.isenabled()), payload(clock, 1e-5)())[1], clock=clock, detect=False)

        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_is_off_inside_blocks():
    clock, seen = ScriptedClock(cost_s=1e-7), set()

    def fn():
        clock.t += 1e-4
        seen.add(gc.isenabled())

    measure(fn, clock=clock, detect=False)

    assert {False} == seen


def test_inputs_from_a_factory_are_rotated():
    clock, seen, numbers = ScriptedClock(cost_s=1e-7), set(), iter(range(1000))

    def fn(a, b):
        seen.add((a, b))
        clock.t += 1e-5

    measure(fn, inputs=lambda: (next(numbers), 0), clock=clock)

    assert len(seen) >= 4
    assert {0} == {b for _, b in seen}


def test_inputs_that_are_no_tuple_are_refused():
    with pytest.raises(UsageError, match="inputs must be a tuple, a function or None, got int"):
        measure(abs, inputs=3)


class Watch:
    """A scripted GPU clock: low in some readings."""

    def __init__(self, *hz, throttled=False):
        self.hz, self.reads, self.throttled = hz, 0, throttled

    def read(self):
        self.reads += 1
        return State(self.hz[self.reads % len(self.hz)], 1.98e9, self.throttled)


def test_blocks_in_which_the_clock_moved_are_dropped_and_counted():
    clock = ScriptedClock(cost_s=1e-7)
    m = measure(payload(clock, 1e-4, noise=Noise("heavy", 5)), clock=clock, watch=Watch(1.9e9, 1.9e9, 1.9e9, 1.5e9))

    assert m.dropped > 0
    assert m.blocks > 0
    assert "clock moved" in repr(m)


def test_a_throttled_run_keeps_nothing_and_says_so():
    clock = ScriptedClock(cost_s=1e-7)
    m = measure(payload(clock, 1e-3), clock=clock, watch=Watch(1.9e9, throttled=True))

    assert m.dropped > 0
    assert any("throttled" in note for note in m.notes)


def test_a_low_clock_is_told_even_when_one_call_fills_the_budget():
    class Low:
        def read(self):
            return State(1.0e9, 1.98e9)

    clock = ScriptedClock()
    m = measure(payload(clock, 0.35), clock=clock, budget_s=0.4, watch=Low(), detect=True)

    assert "clock_low" in [item.kind for item in m.warnings]


def test_what_was_throttled_throughout_has_no_interval():
    clock = ScriptedClock(cost_s=1e-7)
    m = measure(payload(clock, 1e-3), clock=clock, watch=Watch(1.9e9, throttled=True))

    assert (0.0, math.inf) == (m.low_s, m.high_s)
    assert any("from the warm-up" in note for note in m.notes)


def test_a_long_call_is_made_twice_and_the_second_one_counts():
    clock, calls = ScriptedClock(), []

    def slow():
        calls.append(1)
        clock.t += 0.4 if len(calls) == 1 else 0.3

    m = measure(slow, clock=clock, budget_s=0.4)

    assert 2 == len(calls)
    assert (0.3, 0.4) == (pytest.approx(m.median_s), m.first_call_s)
    assert "one call filled the budget" in m.notes[0]
    assert float(m) == m.median_s


@pytest.mark.parametrize("work_s", [1e-6, 1e-3, 0.02])
@pytest.mark.parametrize("detect", [True, False])
@pytest.mark.parametrize("first_call_s", [0.39, 3.0, 25.0])
def test_a_first_call_beyond_the_budget_is_named_and_the_later_ones_are_measured(first_call_s, detect, work_s):
    clock, done = ScriptedClock(cost_s=5e-8), []

    def lazy():
        clock.t += work_s if done else first_call_s
        done.append(1)

    m = measure(lazy, clock=clock, budget_s=0.4, detect=detect)

    assert work_s == pytest.approx(m.median_s, rel=1e-3)
    assert m.blocks > 8
    assert first_call_s == pytest.approx(m.first_call_s)
    assert clock.t <= first_call_s + 1.15 * 0.4
    assert any("the first call took" in note and "happens only once" in note for note in m.notes)


def test_a_first_call_that_takes_no_part_of_the_budget_is_not_mentioned():
    clock, done = ScriptedClock(cost_s=5e-8), []

    def lazy():
        clock.t += 1e-6 if done else 1e-3
        done.append(1)

    assert not any("first call" in note for note in measure(lazy, clock=clock).notes)


def test_the_cause_of_a_cold_call_is_named(tmp_path, monkeypatch):
    (tmp_path / "imported_by_the_first_call.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    clock, done = ScriptedClock(cost_s=5e-8), []

    def imports():
        import imported_by_the_first_call

        clock.t += 1e-4 if done else 50.0
        done.append(1)
        return imported_by_the_first_call.value

    m = measure(imports, clock=clock)

    assert 1e-4 == pytest.approx(m.median_s, rel=1e-2)
    assert any(
        "took 50 s, and a later one 100 µs: it imported 1 module, which happens only once" in note for note in m.notes
    )


@pytest.mark.slow
def test_a_compiled_function_is_timed_after_its_compilation():
    torch = pytest.importorskip("torch")
    x = torch.randn(64, 64)
    m = measure(torch.compile(lambda x: torch.relu(x @ x), backend="aot_eager"), inputs=(x,), budget_s=0.3)

    assert m.median_s < m.first_call_s / 5
    assert any("torch.compile compiled 1 time" in note for note in m.notes)
    assert not {"other_stream", "compile_inside"} & {item.kind for item in m.warnings}


def test_a_slow_machine_that_stretches_blocks_does_not_stretch_the_budget():
    clock = ScriptedClock(cost_s=5e-8)

    def call():
        # From a tenth of a second on, everything takes four times as long: another program has come.
        clock.t += 0.01 if clock.t < 0.1 else 0.04

    m = measure(call, clock=clock, budget_s=0.4, detect=False)

    assert clock.t <= 1.15 * 0.4
    assert not any("instead of" in note for note in m.notes)


def test_a_measurement_that_takes_longer_than_its_budget_says_so():
    clock, gpu = ScriptedClock(), DeviceClock(cost_s=6e-8)
    long = measure(lambda: gpu.queue(0.35), clock=gpu, budget_s=0.4, detect=False)
    short = measure(payload(clock, 1e-3), clock=clock, budget_s=0.2)

    assert long.wall_s > 1.15 * 0.4
    assert any("budgeted 400 ms: the first call took 350 ms" in note for note in long.notes)
    assert not any("budgeted" in note for note in short.notes)


@pytest.mark.parametrize("fn", [3, "f(x)", None, [1]])
def test_what_cannot_be_called_is_refused(fn):
    with pytest.raises(UsageError, match="measure\\(\\) needs a function, got"):
        measure(fn)


@pytest.mark.parametrize("call_s", [0.08, 0.15])
def test_calls_too_few_for_an_interval_are_told(call_s):
    clock = ScriptedClock()
    m = measure(payload(clock, call_s), clock=clock, budget_s=0.4, detect=False)

    assert any("there is no interval" in note for note in m.notes) or math.isfinite(m.high_s)
    assert call_s == pytest.approx(m.median_s)


@pytest.mark.parametrize("first_call_s", [0.03, 0.06, 0.15])
@pytest.mark.parametrize("detect", [True, False])
def test_a_slow_first_call_is_not_the_time_of_a_call(first_call_s, detect):
    clock, done = ScriptedClock(cost_s=5e-8), []

    def lazy():
        clock.t += 1e-6 if done else first_call_s
        done.append(1)

    m = measure(lazy, clock=clock, budget_s=0.4, detect=detect)

    assert 1e-6 == pytest.approx(m.median_s, rel=1e-3)
    assert m.blocks > 8


@pytest.mark.parametrize("work_s", [4e-5, 3e-4, 2e-3])
def test_a_modelled_clock_gives_a_finite_interval_and_a_steady_shape(work_s):
    clock = DeviceClock(launch_s=5e-6, sync_s=1e-5, cost_s=6e-8)
    m = measure(lambda: clock.queue(work_s), clock=clock)

    assert work_s == pytest.approx(m.median_s, rel=1e-4)
    assert clock.t <= 1.15 * 0.4
    assert m.half_width < 0.01
    assert "steady" == m.shape.words


def test_clearing_a_cache_counts_as_budget(monkeypatch):
    clock = ScriptedClock(cost_s=1e-7)

    def flush():
        clock.t += 2e-2

    def fn():
        clock.t += 2e-6

    monkeypatch.setattr("edl_labs.bench._measure.make_flush", lambda clock: flush)
    m = measure(fn, clock=clock, cold=True)

    assert 2e-6 == pytest.approx(m.median_s)
    assert m.blocks > 5
    assert clock.t <= 1.15 * 0.4


def test_a_steady_clock_drops_nothing():
    clock = ScriptedClock(cost_s=1e-7)

    assert 0 == measure(payload(clock, 1e-4), clock=clock, watch=Watch(1.9e9, 1.905e9)).dropped


def test_a_measurement_survives_json_and_carries_schema_and_stamp():
    clock = ScriptedClock(cost_s=1e-7)
    m = measure(payload(clock, 60.0), clock=clock, detect=False)
    text = json.dumps(m.to_json(), allow_nan=False)

    assert m == Measurement.from_json(text)
    assert ("measurement", 1) == (m.to_json()["kind"], m.to_json()["schema"])
    assert m.to_json()["stamp"]["cpu_model"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"kind": "comparison"}',
        '{"kind": "measurement", "schema": 99}',
        '{"kind": "measurement", "schema": 1}',
    ],
)
def test_other_json_is_refused_with_what_it_is(text):
    with pytest.raises(UsageError, match="not a measurement"):
        Measurement.from_json(text)


def test_cold_times_each_call_after_a_flush(monkeypatch):
    clock, state = ScriptedClock(cost_s=1e-7), {"cold": False, "flushes": 0}

    def flush():
        state["cold"], state["flushes"] = True, state["flushes"] + 1
        clock.t += 5e-3

    def fn():
        clock.t += 3e-4 if state["cold"] else 1e-4
        state["cold"] = False

    monkeypatch.setattr("edl_labs.bench._measure.make_flush", lambda clock: flush)
    cold, warm = measure(fn, clock=clock, cold=True), measure(fn, clock=clock)

    assert 3e-4 == pytest.approx(cold.median_s)
    assert 1e-4 == pytest.approx(warm.median_s)
    assert state["flushes"] > 10


def test_a_graph_needs_cuda():
    with pytest.raises(UsageError, match="graph=True needs a CUDA device"):
        measure(lambda: None, graph=True, clock=ScriptedClock())


class ThreadClock(HostClock):
    """The processor time of this thread: what other programs take is not in it."""

    resolution_s, read_cost_s = 1e-9, 2e-7

    def now_s(self):
        return time.thread_time()


@pytest.mark.parametrize("k", [2, 5])
def test_k_calls_take_k_times_as_long_on_a_real_clock(k):
    """Real work, so a loose ratio: the typical one of pairs taken in turn, so that a slow spell meets both sides."""

    def work():
        return sum(range(3000))

    def several():
        for _ in range(k):
            work()

    clock = ThreadClock()
    ratios = [
        measure(several, budget_s=0.05, clock=clock).median_s / measure(work, budget_s=0.05, clock=clock).median_s
        for _ in range(5)
    ]

    assert 0.7 * k < median(ratios) < 1.4 * k


def test_the_clock_of_device_events_gives_the_same_time_as_the_drained_host_clock():
    from edl_labs.clock import EventClock
    from edl_labs.virtual import VirtualGPU

    gpu = VirtualGPU("A100-80GB")
    by_events = EventClock(lambda: gpu.Event(enable_timing=True))
    times = [
        measure(lambda: gpu.launch("k", duration_s=4e-5), clock=clock).median_s for clock in (by_events, gpu.clock)
    ]

    assert [4e-5, 4e-5] == pytest.approx(times, rel=0.01)


def test_a_result_on_virtual_time_says_that_it_is_modelled():
    from edl_labs.virtual import VirtualGPU

    gpu = VirtualGPU("A100-80GB")
    m = measure(lambda: gpu.launch("k", duration_s=4e-5), clock=gpu.clock)

    assert m.stamp is not None
    assert ("virtual", True) == (m.stamp.kind, m.stamp.device_name.startswith("modelled"))
    assert "virtual time" in m._repr_html_()


def test_the_clock_in_use_is_that_of_the_modelled_gpu_that_a_function_reaches():
    from edl_labs.bench.timing.reachable_objects import clock_in_use
    from edl_labs.virtual import VirtualGPU, VirtualWorkers

    gpu, workers = VirtualGPU("A100-80GB"), VirtualWorkers()
    buffer, stream, clock = gpu.empty(8), gpu.Stream(), gpu.clock
    reaching = [lambda: gpu, lambda: buffer.nbytes, lambda: stream.index, lambda: clock.now_s()]

    assert [gpu.clock] * 4 == list(map(clock_in_use, reaching))
    assert gpu.clock is clock_in_use(abs, (buffer,))
    assert "host" == clock_in_use(lambda: workers.now_s()).name


def test_where_marks_alone_matter_a_measurement_takes_its_least_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUICK, "1")
    brief, asked = measure(sum, inputs=([1],), budget_s=5.0), measure(sum, inputs=([1],), budget_s=0.01)

    assert (0.02, 0.01) == (brief.budget_s, asked.budget_s)
    assert 0 <= brief.low_s <= brief.median_s <= brief.high_s  # a few blocks on a busy machine bound nothing below
    assert brief.median_s > 0
