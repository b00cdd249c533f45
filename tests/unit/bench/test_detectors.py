"""Each mistake is found and named with what, why, next; clean functions raise no alarm."""

from __future__ import annotations

import functools
import io
import itertools
import sys
import threading
import time

import pytest
import timing_snippets as snippets
import torch
from scripted_clock import ScriptedClock, payload

from edl_labs.bench import FunctionFailed, measure
from edl_labs.bench.detectors import KINDS, Detection, mistake, waiting
from edl_labs.bench.detectors.inputs_and_results import used_up
from edl_labs.bench.detectors.machine_limits import bound_s
from edl_labs.bench.timing.blocks import ArgumentPool
from edl_labs.errors import UsageError

# What only the timed blocks can show. The rest is seen in the calls before them, on a clock that does not move.
NEED_BLOCKS = {"new_shapes_each_call", "one_small_input", "slow_clock", "impossible_rate", "possible_rate"}
NEED_BLOCKS |= {"kernel_on_a_device_found_by_itself"}
# On scripted time, as many calls as it takes: how long the compiler takes hangs on the machine, and its first call may
# fill any budget; values grow, and inputs come round, after some hundred calls.
SCRIPTED_CALL_S = {"new_shapes_each_call": 0.05, "grows_to_infinity": 1e-4, "cache_that_inputs_rotate_through": 1e-4}


def kinds_of(maker):
    options = maker()
    restore = options.pop("restore", lambda: None)
    try:
        return [item.kind for item in _look(maker.__name__, **options)]
    finally:
        restore()
        _let_threads_end()


def on_scripted_time(fn, *, call_s):
    """`fn` and a clock on which each of its calls takes as long as that, however busy the machine is."""
    clock = ScriptedClock(cost_s=1e-7)

    @functools.wraps(fn)
    def timed(*args):
        clock.t += call_s
        return fn(*args)

    return timed, clock


def _look(name, *, fn, inputs=None, clock=None, **options):
    if name in SCRIPTED_CALL_S:
        fn, clock = on_scripted_time(fn, call_s=SCRIPTED_CALL_S[name])
    if clock is not None or name in NEED_BLOCKS:
        return measure(fn, inputs=inputs, clock=clock, **{"budget_s": 0.4, **options}).warnings
    feed = None if inputs is None else ArgumentPool(inputs)
    session = Detection(fn, feed=feed, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4)
    session.before()
    return session.so_far


def _let_threads_end():
    until = time.monotonic() + 20
    while time.monotonic() < until and any(
        thread.daemon and "busy" in repr(getattr(thread, "_target", None)) for thread in threading.enumerate()
    ):
        time.sleep(0.01)


# Whether a cache matters is told by real time, which a busy machine spoils: a scripted test below stands in for it.
# Collecting all that a process of many tests holds takes ten seconds.
REAL_TIME = {"one_small_input", "collect_in_the_call"}
FOUND = [
    pytest.param(kind, maker, id=f"{kind}-{maker.__name__}", marks=[pytest.mark.slow] * (maker.__name__ in REAL_TIME))
    for kind, maker in snippets.MISTAKES
]


# One object that a call keeps is hidden by objects that another thread of the process keeps, as that of pytest-xdist
# does when a message arrives: then it is looked for again.
KEEPS_ONE_OBJECT, TRIES = {"arrays_kept"}, 3


@pytest.mark.parametrize(("kind", "maker"), FOUND)
def test_the_mistake_is_found_and_nothing_else(kind, maker):
    found = kinds_of(maker)
    for _ in range(TRIES - 1 if maker.__name__ in KEEPS_ONE_OBJECT else 0):
        found = found or kinds_of(maker)

    assert [kind] == found


def test_a_thread_that_has_to_wait_for_its_turn_is_still_seen(monkeypatch):
    ran, done, turns = {7: 0}, {7: False}, iter(range(1000))

    def nap(seconds):
        if next(turns) == 30:  # so many naps pass before another program makes room
            ran[7] = 10_000_000

    monkeypatch.setattr(threading, "active_count", lambda: 2)
    monkeypatch.setattr(time, "sleep", nap)
    monkeypatch.setattr(waiting, "_run_ns", lambda: dict(ran))
    monkeypatch.setattr(waiting, "_is_runnable", lambda thread: not done[thread])
    found = waiting.computing_threads()
    ran[7], done[7] = 0, True

    assert {7} == found
    assert set() == waiting.computing_threads()


def test_what_wakes_now_and_then_does_not_add_up_while_another_thread_waits_for_its_turn(monkeypatch):
    ran, turns = {7: 0, 8: 0}, iter(range(1000))

    def nap(seconds):
        ran[7] += 100_000 if next(turns) % 20 == 0 else 0  # a third of what tells work, every twenty naps

    monkeypatch.setattr(threading, "active_count", lambda: 3)
    monkeypatch.setattr(time, "sleep", nap)
    monkeypatch.setattr(waiting, "_run_ns", lambda: dict(ran))
    monkeypatch.setattr(waiting, "_is_runnable", lambda thread: thread == 8)

    assert set() == waiting.computing_threads()


@pytest.mark.parametrize("maker", [pytest.param(m, id=f"{i}-{m.__name__}") for i, m in enumerate(snippets.CLEAN)])
def test_a_clean_function_raises_no_alarm(maker):
    assert [] == kinds_of(maker)


def test_there_are_130_clean_functions_and_every_kind_of_mistake_has_one():
    assert len(snippets.CLEAN) >= 130
    assert set(KINDS) == {kind for kind, _ in snippets.MISTAKES}


@pytest.mark.parametrize("kind", KINDS)
def test_each_message_says_what_why_and_next(kind):
    said = mistake(kind, "seen here")

    assert all((said.what, said.why, said.next))
    assert "seen here" in said.what + said.why
    assert "{" not in said.what + said.why + said.next


def test_without_inputs_the_detectors_that_need_them_are_reported_as_off():
    m = measure(lambda: None, budget_s=0.01)

    assert {"constant_inputs", "cache_resident"} <= m.off.keys()
    assert "constant_inputs" not in measure(abs, inputs=(3,), budget_s=0.01).off


def test_a_kernel_that_no_watch_sees_may_give_back_its_input():
    class Kernel:
        def __call__(self, x):
            return None

    kernel, x = Kernel(), torch.randn(64)

    def fn():
        kernel(x)
        return x

    assert [] == [item.kind for item in _look("kernel", fn=fn)]


def test_what_looking_takes_is_not_the_calls(monkeypatch):
    class Clock(ScriptedClock):
        modelled = False  # as the processor's own clock, of which looking takes some too

    clock = Clock()
    monkeypatch.setattr(
        "edl_labs.bench.detectors.effect_watch.settings", lambda: setattr(clock, "t", clock.t + 1) or {}
    )
    session = Detection(payload(clock, 0.001), feed=None, clock=clock, enabled=True, cold=False, budget_s=0.4)
    session.before()

    assert 0.001 == pytest.approx(session.first.took_s)
    assert "remembered" not in session.off


def test_with_the_detector_off_nothing_is_looked_at():
    m = measure(lambda: (i for i in range(3)), budget_s=0.01, detect=False)

    assert ((), {"all": "detect=False", "faster_than_light": "no work= and machine= were given"}) == (m.warnings, m.off)


def test_a_warning_is_shown_with_the_number():
    m = measure(lambda: (i for i in range(3)), budget_s=0.01)

    assert "warning: the result has not been computed yet" in repr(m)
    assert "Next" in m._repr_html_()


def test_looking_at_a_call_leaves_torch_as_it_was():
    names = [(torch.cuda, "synchronize"), (torch.accelerator, "synchronize"), (torch.cuda.Stream, "wait_stream")]
    before = [vars(owner).get(name) for owner, name in names]

    def stops():
        raise ValueError("stop")

    with pytest.raises(FunctionFailed):
        measure(stops)
    measure(lambda: torch.ones(3) + 1, budget_s=0.01)

    assert before == [vars(owner).get(name) for owner, name in names]
    assert torch.overrides._len_torch_function_stack() == 0


@pytest.mark.parametrize("good_calls", [1, 5, 20, 200])
@pytest.mark.parametrize(("error", "want"), [(ValueError, FunctionFailed), (KeyboardInterrupt, KeyboardInterrupt)])
def test_a_function_that_fails_during_the_look_is_named(good_calls, error, want):
    calls = iter(range(good_calls))

    def runs_out():
        if next(calls, None) is None:
            raise error("out of luck")

    session = Detection(runs_out, feed=None, clock=ScriptedClock(), enabled=True, cold=False, budget_s=0.4)
    with pytest.raises(want, match="out of luck") as caught:
        session.before()

    assert want is caught.type
    assert None is next(calls, None)


def endless():
    while True:
        yield 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fn", "given", "kind"),
    [
        (sum, lambda: (iter(range(1000)),), "range_iterator"),
        (sum, lambda: ((n for n in (1, 2)),), "generator"),
        (sum, lambda: (map(abs, (1, 2)),), "map"),
        (sum, lambda: (itertools.chain((1,), (2,)),), "chain"),
        (lambda batch: sum(batch["x"]), lambda: ({"x": iter([1, 2])},), "list_iterator"),
        (lambda numbers: next(numbers, None), lambda: (iter(range(3)),), "range_iterator"),
    ],
)
def test_an_input_that_calls_use_up_is_refused(fn, given, kind):
    with pytest.raises(UsageError) as caught:
        measure(fn, inputs=given(), budget_s=0.01, clock=ScriptedClock(cost_s=1e-7))

    assert f"an input is an exhausted {kind}" == caught.value.what
    assert "inside the function" in caught.value.next


def test_an_iterator_that_waits_or_fails_is_not_asked_for_more_than_it_gives():
    waits = iter(lambda: pytest.fail("asked"), None)
    fails = map(int, ["no number"])

    assert "" == used_up([(waits, fails)])


def test_a_factory_of_inputs_that_calls_use_up_is_refused_too():
    with pytest.raises(UsageError, match="an input is an exhausted range_iterator"):
        measure(sum, inputs=lambda: (iter(range(10)),), budget_s=0.01)


class Restarting:
    """A loader that is its own iterator and starts anew after its end."""

    def __iter__(self):
        self.left = 3
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return 1


@pytest.mark.parametrize(
    ("fn", "given"),
    [
        (next, (endless(),)),
        (next, (itertools.count(),)),
        (next, (map(abs, itertools.count()),)),
        (sum, (Restarting(),)),
        (sum, (range(10),)),
        (lambda file: file.seek(0) or file.read(), (io.StringIO("text"),)),
    ],
)
def test_iterators_that_do_not_end_and_those_that_start_anew_are_measured(fn, given):
    assert measure(fn, inputs=given, budget_s=0.01).median_s > 0


def test_the_cache_does_not_matter_once_it_is_cleared_for_each_call():
    options = snippets.small_working_set_on_a_device()
    cold, warm = measure(**options, cold=True), measure(**options)

    assert [] == [item.kind for item in cold.warnings]
    assert cold.median_s > 1.5 * warm.median_s


def test_work_and_machine_may_be_values_with_attributes():
    class Work:
        contraction_flops, other_flops, moved_bytes, dtype = 1e12, 0.0, 1e9, "fp16"

    class Machine:
        memory_bandwidth_byte_per_s = 1e12

        def peak_flop_per_s(self, dtype):
            return {"fp16": 1e14, "fp32": 1e13}[dtype]

    assert 0.01 == pytest.approx(bound_s(Work(), Machine()))


def test_work_without_a_machine_is_refused():
    with pytest.raises(UsageError, match="needs machine"):
        measure(lambda: None, work={"flops": 1e9}, budget_s=0.01)


def test_measuring_does_not_load_torch():
    import subprocess

    code = """if True:
        import sys
        from edl_labs.bench import measure
        measure(lambda: 1, budget_s=0.01)
        sys.exit("torch" in sys.modules)"""

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


@pytest.mark.parametrize(("extra_s", "want"), [(3e-4, ["cache_resident"]), (2e-6, [])])
def test_a_resident_input_is_told_where_a_cleared_cache_makes_a_difference(monkeypatch, extra_s, want):
    clock, state = ScriptedClock(cost_s=1e-7), {"cold": False}

    def flush():
        clock.t += 5e-3
        state["cold"] = True

    def fn(x):
        clock.t += 1e-4 + (extra_s if state["cold"] else 0.0)
        state["cold"] = False
        return x

    monkeypatch.setattr("edl_labs.bench.detectors.machine_limits.make_flush", lambda clock: flush)
    m = measure(fn, inputs=(torch.randn(1 << 18),), clock=clock)

    assert want == [item.kind for item in m.warnings]


@pytest.mark.parametrize(("starts_each", "found"), [(False, False), (True, True)])
@pytest.mark.parametrize("call_s", [1e-4, 0.15])
def test_a_thread_left_by_the_first_call_alone_serves_all_calls(call_s, starts_each, found):
    clock, done, stop = ScriptedClock(cost_s=5e-8), [], threading.Event()

    def call():
        if starts_each or not done:
            threading.Thread(target=stop.wait, daemon=True).start()
        done.append(1)
        clock.t += call_s if done[1:] or call_s > 0.1 else 0.35

    try:
        m = measure(call, clock=clock, budget_s=0.4)
    finally:
        stop.set()

    assert found == ("other_stream" in [item.kind for item in m.warnings])
