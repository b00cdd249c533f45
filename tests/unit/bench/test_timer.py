"""Timer: drained ends, nested laps, running means, warnings, and almost nothing when disabled."""

from __future__ import annotations

import asyncio
import math
import threading
import timeit

import pytest
from scripted_clock import DeviceClock, ScriptedClock

from edl_labs.bench import Timer
from edl_labs.clock import AcceleratorClock, HostClock


class CountingClock(DeviceClock):
    """A device's clock that counts how often it was waited for."""

    waits = 0

    def synchronize(self):
        self.waits += 1
        super().synchronize()


def test_a_region_is_timed_between_drained_ends():
    clock = DeviceClock(launch_s=1e-6, sync_s=0.0)
    clock.queue(5e-3)
    with Timer("step", clock=clock) as timer:
        clock.queue(2e-3)

    assert 2e-3 == pytest.approx(timer.elapsed_s, rel=1e-2)


def test_a_decorated_function_is_timed_at_each_call_and_returns_its_result():
    clock = ScriptedClock()
    timer = Timer("work", clock=clock)

    @timer
    def work(x):
        """Works."""
        clock.t += x
        return 2 * x

    assert (2.0, 4.0) == (work(1.0), work(2.0))
    assert (2, 3.0, 1.5) == (timer["work"].count, timer["work"].total_s, timer["work"].mean_s)
    assert ("work", "Works.") == (work.__name__, work.__doc__)


def test_laps_nest_into_paths():
    clock = ScriptedClock()
    with Timer("step", clock=clock) as timer:
        with timer.lap("forward"):
            clock.t += 1.0
            with timer.lap("attention"):
                clock.t += 2.0
        with timer.lap("backward"):
            clock.t += 4.0

    assert {"step": 7.0, "step/forward": 3.0, "step/forward/attention": 2.0, "step/backward": 4.0} == {
        path: lap.total_s for path, lap in timer.laps.items()
    }
    assert 2.0 == timer["attention"].total_s


def in_threads(*works):
    """Runs each of `works` in a thread of its own; all are inside before any goes on."""
    together = threading.Barrier(len(works))
    threads = [threading.Thread(target=work, args=(together,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_laps_of_threads_do_not_nest_in_each_other():
    timer = Timer("run", clock=HostClock())

    def work(together):
        for _ in range(50):
            with timer.lap("w"):
                together.wait(timeout=60)
                with timer.lap("part"):
                    together.wait(timeout=60)

    with timer:
        in_threads(work, work, work, work)

    assert {"run": 1, "w": 200, "w/part": 200} == {path: lap.count for path, lap in timer.laps.items()}


def test_whole_regions_of_threads_end_with_their_own_times():
    clock = ScriptedClock()
    timer = Timer("run", clock=clock)

    def first(together):
        with timer:
            together.wait(timeout=60)  # both are open
            together.wait(timeout=60)  # the other one has ended
            clock.t += 2.0

    def second(together):
        with timer:
            together.wait(timeout=60)
            clock.t += 1.0
        together.wait(timeout=60)

    in_threads(first, second)

    assert (2, 4.0, 1.0, 3.0) == (
        timer["run"].count,
        *(getattr(timer["run"], n) for n in ("total_s", "min_s", "max_s")),
    )


def test_laps_of_asyncio_tasks_nest_where_the_task_was_made():
    timer = Timer("serve", clock=HostClock())

    async def request():
        with timer.lap("request"):
            await asyncio.sleep(0)
            with timer.lap("answer"):
                await asyncio.sleep(0)

    async def serve():
        with timer:
            await asyncio.gather(*(request() for _ in range(4)))

    asyncio.run(serve())

    assert {"serve": 1, "serve/request": 4, "serve/request/answer": 4} == {
        path: lap.count for path, lap in timer.laps.items()
    }


def test_two_timers_do_not_nest_in_each_other():
    clock = ScriptedClock()
    outer, inner = Timer("outer", clock=clock), Timer("inner", clock=clock)
    with outer, inner, outer.lap("a"), inner.lap("b"):
        clock.t += 1.0

    assert (["outer/a", "outer"], ["inner/b", "inner"]) == (list(outer.laps), list(inner.laps))


def test_a_training_loop_separates_loading_from_training():
    clock = DeviceClock(launch_s=0.0, sync_s=0.0)

    def loader():
        for batch in range(5):
            clock.t += 0.3
            yield batch

    timer = Timer("epoch", clock=clock)
    for _ in timer.over(loader()):
        with timer.lap("training"):
            clock.queue(0.5)

    assert (5, pytest.approx(0.3)) == (timer["loading"].count, timer["loading"].mean_s)
    assert (5, pytest.approx(0.5)) == (timer["training"].count, timer["training"].mean_s)


def test_the_running_mean_forgets_a_slow_first_lap():
    clock, timer = ScriptedClock(), None
    timer = Timer(clock=clock)
    for cost in [10.0] + [1.0] * 60:
        with timer.lap("step"):
            clock.t += cost

    assert 1.0 == pytest.approx(timer["step"].running_mean_s, rel=0.1)
    assert 1.1 < timer["step"].mean_s


def test_a_region_that_raises_is_not_counted_and_the_timer_stays_usable():
    clock = ScriptedClock()
    timer = Timer("step", clock=clock)
    with pytest.raises(KeyboardInterrupt), timer, timer.lap("part"):
        raise KeyboardInterrupt
    with timer:
        clock.t += 1.0

    assert {"step": 1} == {path: lap.count for path, lap in timer.laps.items()}


def test_a_loader_that_raises_is_passed_on_and_the_timer_stays_usable():
    def loader():
        yield 1
        raise OSError("disk")

    timer = Timer(clock=ScriptedClock())
    with pytest.raises(OSError, match="disk"):
        list(timer.over(loader()))
    with timer.lap("after"):
        pass

    assert ["loading", "after"] == list(timer.laps)


def test_a_disabled_timer_reads_no_clock_and_counts_nothing():
    clock = ScriptedClock()
    timer = Timer(clock=clock, enabled=False)
    with timer, timer.lap("part"):
        pass
    list(timer.over([1, 2]))
    timer(len)([1])

    assert (0, {}) == (clock.reads, timer.laps)
    assert math.isnan(timer.elapsed_s)


def test_a_disabled_lap_costs_little_beside_an_enabled_one():
    def lap(timer):
        with timer.lap("part"):
            pass

    on, off = Timer(enabled=True), Timer(enabled=False)
    ratios = [
        timeit.timeit(lambda: lap(off), number=2000) / timeit.timeit(lambda: lap(on), number=2000) for _ in range(7)
    ]

    assert min(ratios) < 0.5


def test_an_undrained_region_is_told():
    clock = DeviceClock(launch_s=1e-6, sync_s=0.0)
    timer = Timer("step", clock=clock, sync=False)
    with timer:
        clock.queue(1e-2)

    assert ["no_sync"] == [item.kind for item in timer.warnings]


@pytest.mark.parametrize(("work_s", "told"), [(0.0, []), (1e-2, ["no_sync"])])
def test_without_sync_only_a_few_laps_are_looked_at(work_s, told):
    clock = CountingClock(launch_s=1e-6, sync_s=0.0)
    timer = Timer("step", clock=clock, sync=False)
    for _ in range(100):
        with timer, timer.lap("part"):
            clock.t += 1e-3
            clock.queue(work_s)
        clock.t += 1.0
    found = [item.kind for item in timer.warnings]

    assert (told, 100, 6) == (found, timer["part"].count, clock.waits)


@pytest.mark.parametrize(
    ("busy_turns", "told"), [([0], []), ([2], []), ([0, 1], ["no_sync"]), ([0, 1, 2], ["no_sync"])]
)
def test_most_looks_count_for_one_may_meet_a_busy_host(busy_turns, told):
    clock = CountingClock(launch_s=1e-6, sync_s=0.0)
    timer = Timer("step", clock=clock, sync=False)
    for turn in range(5):
        with timer:
            clock.t += 1e-3
            clock.queue(1e-2 if turn in busy_turns else 0.0)

    assert told == [item.kind for item in timer.warnings]


@pytest.mark.parametrize("uses_device_from", [0, 50])
def test_beside_the_hosts_clock_a_device_is_looked_at_a_few_times_once_it_is_used(monkeypatch, uses_device_from):
    waited = []
    device = object.__new__(AcceleratorClock)
    monkeypatch.setattr(AcceleratorClock, "synchronize", lambda self: waited.append(self))
    timer = Timer("step", clock=ScriptedClock())
    for turn in range(100):
        here = device if turn >= uses_device_from else HostClock()
        monkeypatch.setattr("edl_labs.bench._timer.clock_in_use", lambda _, here=here: here)
        with timer:
            pass

    assert [device] * 3 == waited


def test_a_drained_region_raises_no_warning():
    clock = DeviceClock(launch_s=1e-6)
    timer = Timer("step", clock=clock)
    for _ in range(10):
        with timer:
            clock.queue(1e-3)

    assert () == timer.warnings


def test_a_first_lap_with_compilation_in_it_is_told():
    clock = ScriptedClock()
    timer = Timer("step", clock=clock)
    for cost in (5.0, 0.1, 0.1, 0.1, 0.1):
        with timer:
            clock.t += cost

    assert ["compile_inside"] == [item.kind for item in timer.warnings]


def test_the_text_shows_each_lap_with_its_share():
    clock = ScriptedClock()
    with Timer("step", clock=clock) as timer, timer.lap("half"):
        clock.t += 1.0

    assert "step/half: 1 s × 1 = 1 s, 100 %" in repr(timer)
    assert "has not run yet" in repr(Timer("idle"))


def test_an_unknown_lap_is_named():
    with pytest.raises(KeyError, match="there is no lap 'x'"):
        Timer()["x"]
