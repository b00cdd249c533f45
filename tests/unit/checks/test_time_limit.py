"""A limit ends what a student's code does in a check, and tells; what is quick never notices."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from edl_labs.checks import _check, check, lab_exercises, outcome_display
from edl_labs.checks import time_limit as limits
from edl_labs.checks.time_limit import Limit, TookTooLong, notify_if_slow, time_limit
from edl_labs.course.run.checkfile import CHECK_LIMITS


def run_out() -> None:
    """The limit is reached here and now, whatever the machine does beside."""
    signal.raise_signal(signal.SIGALRM)


def run_out_twice() -> None:
    try:
        run_out()
    except BaseException:
        run_out()


def endless() -> None:
    while True:
        pass


def stubborn() -> None:
    """Catches what ends it, once."""
    try:
        endless()
    except BaseException:
        endless()


def deadlock() -> None:
    lock = threading.Lock()
    for _ in range(2):
        lock.acquire()


@pytest.mark.parametrize("code", [endless, stubborn, deadlock, lambda: time.sleep(600)])
def test_what_does_not_end_is_ended(code) -> None:
    with pytest.raises(TookTooLong), time_limit(0.2) as limit:
        code()

    assert limit.reached


def test_a_thread_that_is_not_the_main_one_is_ended_too() -> None:
    seen = []

    def work() -> None:
        try:
            with time_limit(0.2):
                stubborn()
        except TookTooLong:
            seen.append("ended")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)

    assert ["ended"] == seen


def test_what_ends_in_time_leaves_the_alarm_as_it_was() -> None:
    handler, (left_s, every_s) = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)

    with time_limit(60) as limit:
        pass

    after_s, after_every_s = signal.getitimer(signal.ITIMER_REAL)
    assert not limit.reached
    assert (handler, every_s) == (signal.getsignal(signal.SIGALRM), after_every_s)
    assert (left_s > 0) == (after_s > 0)
    assert after_s <= left_s


class Rung(Exception):
    """An alarm of somebody else."""


@pytest.fixture
def others_alarm() -> Iterator[Callable[[float], None]]:
    """Sets an alarm that raises Rung, as code round a limit may have."""

    def rung(*_: object) -> None:
        raise Rung

    def set_alarm(after_s: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, after_s)

    before = signal.signal(signal.SIGALRM, rung)
    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_time_within_a_limit_counts_for_the_alarm_round_it(others_alarm, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(limits, "_clock_s", lambda: now_s[0])
    others_alarm(60_000)

    with time_limit(50_000):
        now_s[0] += 40_000

    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 20_000


def test_an_alarm_that_was_due_within_a_limit_comes_when_it_ends(others_alarm, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(limits, "_clock_s", lambda: now_s[0])
    others_alarm(30_000)

    def work() -> None:
        with time_limit(50_000):
            now_s[0] += 40_000
        endless()

    with pytest.raises(Rung):
        work()


def test_an_alarm_that_is_due_sooner_than_a_limit_in_it_comes_in_it(
    others_alarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(limits, "_clock_s", lambda: now_s[0])
    others_alarm(30_000)

    with time_limit(50_000) as limit:
        assert signal.getitimer(signal.ITIMER_REAL)[0] <= 30_000
        now_s[0] += 30_000
        with pytest.raises(Rung):
            run_out()
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 20_000

    assert not limit.reached


@pytest.mark.parametrize(("outer_s", "inner_s"), [(100, 200), (200, 100)])
def test_of_two_limits_the_sooner_ends_first(outer_s: float, inner_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(limits, "_clock_s", lambda: now_s[0])

    with time_limit(outer_s) as outer, time_limit(inner_s) as inner:
        assert signal.getitimer(signal.ITIMER_REAL)[0] <= 100
        now_s[0] += 150
        with pytest.raises(TookTooLong):
            run_out()

    assert (outer_s < inner_s, inner_s < outer_s) == (outer.reached, inner.reached)


def test_a_handler_that_c_code_has_set_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("it could not be put back"))

    with pytest.raises(TookTooLong), time_limit(0.2):
        endless()


def test_who_waits_long_is_told_once_and_others_never() -> None:
    told = threading.Event()
    with notify_if_slow(0.01, told.set):
        assert told.wait(60)

    late = threading.Event()
    with notify_if_slow(600, late.set):
        pass
    assert not late.is_set()


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("code", [run_out, run_out_twice])
def test_a_check_stops_by_itself_after_the_first_case_that_hits_the_limit(code, capsys) -> None:
    calls = []

    score = check("double", {"double": lambda x: calls.append(x) or code()})

    assert (0.0, 1) == (score, len(calls))
    assert "wrong" == score.outcome.state
    assert "your code was still running after 60 s and was stopped" == score.outcome.what
    assert 0 == score.outcome.case_index
    out = capsys.readouterr().out
    assert "look for a loop or a wait that never ends" in out
    assert 2.0 == check("double", {"double": lambda x: 2 * x}), "the next check works as ever"


@pytest.mark.usefixtures("numbers")
def test_all_cases_of_a_check_share_one_allowance_as_in_grading(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, given_s = [100.0], []

    def slow(x: float) -> float:
        now_s[0] += 25.0
        return 2 * x

    @contextmanager
    def noted(limit_s: float) -> Iterator[Limit]:
        given_s.append(limit_s)
        yield Limit(limit_s)

    monkeypatch.setattr(_check, "_clock_s", lambda: now_s[0])
    monkeypatch.setattr(_check, "time_limit", noted)

    outcome = check("double", {"double": slow}).outcome

    assert [60.0, 35.0, 10.0] == given_s
    assert "your code was still running after 60 s and was stopped" == outcome.what
    assert "all cases together" in outcome.why
    assert 3 == outcome.case_index


@pytest.mark.parametrize("lab", lab_exercises.lab_names())
def test_every_check_stops_by_itself_before_a_cell_of_edl_labs_check_does(lab: str) -> None:
    limits_s = {one.name: one.timeout_s for one in lab_exercises.load_lab(lab)}

    for one in lab_exercises.load_lab(lab):
        assert one.timeout_s + sum(limits_s[used] for used in one.uses) < CHECK_LIMITS.cell_s


@pytest.mark.usefixtures("numbers")
def test_a_slow_check_says_that_it_runs_and_how_to_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = threading.Event()
    monkeypatch.setattr(_check, "_SLOW_S", 0.01)
    monkeypatch.setattr(_check, "show_running", lambda name, after_s: said.set())

    check("double", {"double": lambda x: said.wait(60) and 2 * x})

    assert said.is_set()


def test_the_line_goes_past_what_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    shell = type("Shell", (), {"display_pub": type("Publisher", (), {"publish": staticmethod(shown.append)})})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)

    outcome_display.show_running("double", 10.0)

    assert shown[0]["text/plain"].startswith("double: still running after 10 s; press ■ (interrupt) to stop it.")
