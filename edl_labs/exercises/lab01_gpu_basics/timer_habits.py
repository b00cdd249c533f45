"""Mistakes in honest_timer that the programs and numbers of all cases show: each rule must give every number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from edl_labs.checks import close
from edl_labs.errors import Wrong
from edl_labs.exercises.recorded_programs import SYNCS, Window, windows
from edl_labs.units import seconds
from edl_labs.virtual import Replay

_ENOUGH_SINGLE, _ENOUGH_RUNS = 10, 3  # fewer may be a look at the machine, and no habit
_SAME = 1e-9  # what floats lose between two readings and a number


@dataclass(frozen=True)
class Timed:
    """One machine as it was timed: the program, the number that came back, and the message about it, empty if right."""

    run: Replay
    value: float
    told: str

    @cached_property
    def every(self) -> list[Window]:
        """All windows between readings."""
        return windows(self.run)

    @cached_property
    def tight(self) -> list[Window]:
        """Those with no reading between their own."""
        return [window for window in self.every if window.is_tight]

    @property
    def has_too_few(self) -> bool:
        """Whether more calls would have made it right."""
        return self.told.startswith("too few calls")


def known_timer_habit(timed: list[Timed]) -> Wrong | None:
    """The one mistake that gives the numbers of all machines; None where none does."""
    return next((say(timed) for fits, say in _HABITS if all(map(fits, timed))), None)


def _waits_elsewhere(one: Timed) -> bool:
    """Whether all that was waited for is streams into which nothing was launched."""
    waits = [entry for entry in one.run.program if entry["op"] in SYNCS]
    busy = {entry["stream"] for entry in one.run.program if entry["op"] == "launch"}
    return bool(waits) and all(entry["op"] == "sync_stream" and entry["stream"] not in busy for entry in waits)


def _times_single_calls(one: Timed) -> bool:
    """Whether warm runs are of one drained call each, and the number is of one of them or between them."""
    warm = [window for window in one.tight if not window.starts_cold]
    if len(warm) < _ENOUGH_SINGLE or any(window.calls > 1 or not window.ends_drained for window in warm):
        return False
    times_s = [window.per_call_s for window in warm]
    return min(times_s) * (1 - _SAME) <= one.value <= max(times_s) * (1 + _SAME)


def _takes_the_least(one: Timed) -> bool:
    """Whether the number is the least of several runs of as many calls."""
    warm = [window for window in one.tight if not window.starts_cold]
    if len(warm) < _ENOUGH_RUNS or len({window.calls for window in warm}) > 1:
        return False
    return all(window.ends_drained for window in warm) and close(one.value, _least_s(warm), rtol=_SAME, atol=1e-15)


def _least_s(runs: list[Window]) -> float:
    return min(window.per_call_s for window in runs)


def _is_below_the_middle(one: Timed) -> bool:
    return one.has_too_few and one.value < (1 - _SAME) * median(window.per_call_s for window in one.tight)


def _subtracts_the_issuing(one: Timed) -> bool:
    """Whether the number is what passes, over the calls, between a reading after them and a later one."""
    return any(
        close(one.value, (done.elapsed_s - issued.elapsed_s) / done.calls, rtol=_SAME, atol=1e-15)
        for issued in one.tight
        for done in one.every
        if not done.is_tight and done.calls == issued.calls and done.ends_drained
    )


def _has_seen_a_cold_call_alone(one: Timed) -> bool:
    """Whether a cold call was timed, then the run of the number, and nothing else."""
    if len(one.tight) != 2 or not (one.told == "" or one.has_too_few):
        return False
    cold, last = one.tight
    is_cold = cold.starts_cold and cold.calls == 1 and cold.ends_drained and not last.starts_cold
    return is_cold and close(one.value, last.per_call_s, rtol=_SAME, atol=1e-15)


def _say_elsewhere(timed: list[Timed]) -> Wrong:
    why = (
        "nothing runs in the stream that your timer waits for, so the wait is over at once; fn launches into another "
        "stream"
    )
    then = "wait for the device, or for the stream that fn launches into"
    return Wrong("your timer waits for a stream in which no kernel runs", why=why, next=then)


def _say_single(timed: list[Timed]) -> Wrong:
    why = (
        "your number is the time of a single call, or lies between such times: each such "
        "time contains a launch, a kernel "
        "and a wait, one after another, and is rounded to steps of the clock"
    )
    then = (
        "make many calls between two readings, and wait only at the end: in the steady state there is no wait between "
        "calls"
    )
    return Wrong("your timer times each call separately, and waits for each one", why=why, next=then)


def _say_least(timed: list[Timed]) -> Wrong | None:
    if not any(map(_is_below_the_middle, timed)):
        return None  # the median would have given the same
    why = "of several equal runs, the shortest is the one that the clock's step shortens most, so more runs do not help"
    then = "make more calls per run: how long must a run be until one step of the clock no longer matters?"
    return Wrong(
        "too few calls for this clock, and your timer returns the shortest of several runs", why=why, next=then
    )


def _say_subtracted(timed: list[Timed]) -> Wrong:
    why = (
        "your number is the time between a reading after the last call was issued and a later one, divided by the calls"
    )
    then = (
        "include that time: kernels already run while the host issues calls, and a call takes as long as the slower of "
        "host and device"
    )
    return Wrong("your timer subtracts the time in which it issues the calls", why=why, next=then)


def _say_cold(timed: list[Timed]) -> Wrong | None:
    if not any(one.has_too_few for one in timed):
        return None
    cold_s = next(one.tight[0].elapsed_s for one in timed if one.has_too_few)
    why = (
        f"before that run, your timer timed only a first call. It took {seconds(cold_s)}, mostly "
        "to set up the machine, "
        "so a number of calls derived from it is far too small; a fixed number does not suit every clock"
    )
    then = "warm up, then time longer and longer runs until one step of the clock no longer matters"
    return Wrong("too few calls: their number is derived from a cold call, or is fixed", why=why, next=then)


_HABITS: tuple[tuple[Callable[[Timed], bool], Callable[[list[Timed]], Wrong | None]], ...] = (
    (_waits_elsewhere, _say_elsewhere),
    (_times_single_calls, _say_single),
    (_takes_the_least, _say_least),
    (_subtracts_the_issuing, _say_subtracted),
    (_has_seen_a_cold_call_alone, _say_cold),
)
