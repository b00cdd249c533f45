"""honest_timer: a timer judged by the program that it ran and the number that it gave."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab01_gpu_basics.timer_habits import Timed, known_timer_habit
from edl_labs.exercises.recorded_programs import SYNCS, Window, replayed, require_bound, windows, written
from edl_labs.units import counted, seconds
from edl_labs.virtual import Replay, VirtualGPU, VirtualMachine
from edl_labs.virtual.case_program import CaseProgram

KERNEL = "kernel"
# Calls in a window of events, or between two runs whose difference is the number.
ENOUGH_CALLS = 10
TOLERANCE = 0.03  # promised in the lab's text
_MOST_READ_AGAIN = 20_000  # operations of a program, which take a tenth of a second to replay
FEW_SYNCS = 40  # generous: two are needed, and finding the number of calls may take some more


@exercise("honest_timer")
class HonestTimer(Exercise):
    """Steady-state seconds per call, explained by two readings around a drained run of enough calls.

    `student.time_device(fn, gpu)` gives seconds per call; the evidence is the recorded program and that number.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"seconds_per_call": 0.0, "program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        gpu = VirtualGPU(given["chip"], **given["parameters"])
        kernel_s = given["kernel_s"]
        value = student.time_device(lambda: gpu.launch(KERNEL, duration_s=kernel_s), gpu)
        return {"seconds_per_call": value, "program": written(gpu.program)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = _replayed(case, got)
        _refuse_other_work(run, case["kernel_s"])
        _judge_timer(run, got["seconds_per_call"], kernel_s=case["kernel_s"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """A habit that gives the numbers of all machines."""
        timed: list[Timed] = []
        for case, one in zip(cases, got, strict=True):
            timed.append(_timed(case, one))
            if len(timed[-1].run.program) > _MOST_READ_AGAIN:
                return None
        return known_timer_habit(timed)

    def public_want(self, case: Any, want: Any) -> Any:
        """Nothing: the judge needs no reference, and its program would be a timer to copy."""
        return {}

    def format_answer(self, case: Any, got: Any) -> str:
        """The number alone: the program is long."""
        return f"{seconds(got['seconds_per_call'])} per call"

    def format_case(self, case: Any) -> str:
        known = case["parameters"]
        return (
            f"a modelled {case['chip']}: a launch takes {seconds(known['launch_overhead_s'])}, the kernel "
            f"{seconds(case['kernel_s'])}; the clock's step is {seconds(known['clock_resolution_s'])}, "
            f"a reading takes {seconds(known['clock_read_cost_s'])}"
        )


def _replayed(case: Any, got: Any) -> Replay:
    return replayed(got["program"], VirtualGPU(case["chip"], **case["parameters"]).machine)


def _timed(case: Any, got: Any) -> Timed:
    """One machine's program with what is told of it; Wrong where the program does other work."""
    run = _replayed(case, got)
    _refuse_other_work(run, case["kernel_s"])
    try:
        _judge_timer(run, got["seconds_per_call"], kernel_s=case["kernel_s"])
    except Wrong as wrong:
        return Timed(run, got["seconds_per_call"], wrong.what)
    return Timed(run, got["seconds_per_call"], "")


def per_call_s(*, launch_s: float, kernel_s: float) -> float:
    """Seconds per call in the steady state: whichever of host and device is slower."""
    return max(launch_s, kernel_s)


def _judge_timer(run: Replay, value: Any, *, kernel_s: float) -> None:
    truth_s = per_call_s(launch_s=run.machine.launch_overhead_s, kernel_s=kernel_s)
    every = windows(run)
    is_right = close(value, truth_s, rtol=TOLERANCE)
    if not (is_right and _is_explained(every, value)):
        raise _unexplained(every, value, is_right=is_right)
    calls, syncs = run.counts["launch"], sum(run.counts.get(op, 0) for op in SYNCS)
    if syncs > max(FEW_SYNCS, calls / 4):
        raise Wrong(
            "your timer synchronises the device far more often than needed",
            why=f"it used {counted(syncs, 'synchronisation')} for {counted(calls, 'call')}",
            next="drain the device before each of the two readings; the calls between them need no synchronisation",
        )
    spent_s = run.makespan_s - run.machine.context_init_s - run.machine.module_load_s
    if spent_s > _allowed_s(run.machine, truth_s):
        raise Wrong(
            "your timer makes far more calls than this clock requires",
            why=f"it kept the machine busy for {seconds(spent_s)} to time calls that take {seconds(truth_s)} each",
            next="derive the number of calls from the clock's resolution and cost: start with few calls, and increase "
            "it",
        )


def _allowed_s(machine: VirtualMachine, truth_s: float) -> float:
    """A second, or twenty times what a careful timer needs, whichever is more."""
    fixed_s = machine.clock_resolution_s + 2 * machine.clock_read_cost_s + machine.sync_overhead_s
    return max(1.0, 20 * (100 * (fixed_s + machine.launch_overhead_s) + 10 * truth_s))


def _is_explained(every: list[Window], value: float) -> bool:
    sound = [window for window in every if not _faults(window)]
    if any(_has_enough(window) and close(window.per_call_s, value, rtol=TOLERANCE) for window in sound):
        return True
    # The difference of two runs cancels what a run costs beside its calls: an honest number too.
    tight = [window for window in sound if window.is_tight]
    return any(_comes_to(value, more, less) for more in tight for less in tight)


def _has_enough(window: Window) -> bool:
    """Whether a window has calls enough: a clock's ticks ask for them, an event's do not, so expected a number."""
    return window.tick_s > 0 or window.calls >= ENOUGH_CALLS


def _comes_to(value: float, more: Window, less: Window) -> bool:
    # Both by one clock, and far enough apart that a pair of tokens cannot come to any number by chance.
    if more.tick_s != less.tick_s or more.calls - less.calls < ENOUGH_CALLS:
        return False
    extra_s = more.elapsed_s - less.elapsed_s
    is_fine = more.tick_s + less.tick_s <= TOLERANCE * extra_s
    return is_fine and close(extra_s / (more.calls - less.calls), value, rtol=TOLERANCE)


def _faults(window: Window) -> str:
    """What makes a window's time no time of its calls; empty when nothing does."""
    if not window.ends_drained:
        return "your timer takes the last reading before the device is done"
    if window.starts_cold:  # before it was called at all there is nothing to drain
        return "your timer includes the first call in the measurement"
    if not window.starts_drained:
        return "your timer takes the first reading while the device is still busy"
    if window.tick_s > TOLERANCE * window.elapsed_s:
        return "too few calls for this clock"
    return ""


_NEXT = {
    "your timer takes the last": "what has the device done by the time the last fn() returns?",
    "your timer takes the first": "drain the device before the first reading, too",
    "too few calls for": "how long must all calls together take until one step of the clock no longer matters?",
    "your timer includes": "warm up: call fn() and drain the device before the first reading",
    "your timer synchronises": "synchronise once, at the end: each synchronisation costs time and empties the queue",
    "too few calls": "time more calls: what is paid once, at the start and the end, must be small compared with them",
}


def _unexplained(every: list[Window], value: Any, *, is_right: bool) -> Wrong:
    near = [w for w in every if w.elapsed_s > 0 and close(value, w.per_call_s, rtol=1e-3)]
    near += [w for w in every if w.elapsed_s == 0 and close(value, 0.0, atol=0.0)]
    if near:
        return _told(max(near, key=lambda window: window.calls), value)
    if any(close(value, window.elapsed_s, rtol=1e-3) for window in every):
        why = f"it returned {seconds(value)}, which is the whole time between two readings"
        return Wrong(
            "your timer returned the time of all calls together", why=why, next="divide it by the number of calls"
        )
    for factor, unit in ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")):
        if any(close(value, factor * window.per_call_s, rtol=1e-3) for window in every):
            why = f"your timer returned {value:.4g}, which as seconds would be {seconds(value)}"
            return Wrong(f"the number is in {unit}", why=why, next="return the time in seconds")
    sound = [window.per_call_s for window in every if not _faults(window)]
    for digits, unit in ((6, "microseconds"), (7, "tenths of a microsecond"), (5, "hundredths of a millisecond")):
        near_s = next((one for one in sound if close(value, round(one, digits), rtol=1e-9)), None)
        if near_s is not None:
            why = (
                f"it returned {seconds(value)}, but a run with the device drained at both ends gives "
                f"{seconds(near_s)} per call"
            )
            return Wrong(f"your timer rounds to whole {unit}", why=why, next="return the number without rounding it")
    if is_right:
        return Wrong(
            "no two readings of the clock give your number",
            why="your number is right, but it does not follow from what your timer measured",
            next="make enough calls between two readings, drain the device before each, and return the time per call",
        )
    if not every:
        why = "there are no two readings of the clock with calls between them"
        return Wrong(
            "your timer did not time anything", why=why, next="read gpu.clock.now_s() before and after a run of calls"
        )
    why = "it does not follow from any two of your timer's readings, and it is off by more than 3 %"
    return Wrong("the number is not the time of a call", why=why, next="return (last - first) / calls")


def _told(window: Window, value: float) -> Wrong:
    what = _faults(window)
    if not what and window.calls > 1 and window.syncs >= window.calls:
        what = "your timer synchronises for every call"
    what = what or "too few calls between the readings"
    then = next(text for start, text in _NEXT.items() if what.startswith(start))
    why = f"it returned {seconds(value)} per call, from {counted(window.calls, 'call')} in {seconds(window.elapsed_s)}"
    return Wrong(what, why=why, next=then)


def _refuse_other_work(run: Replay, kernel_s: float) -> None:
    for entry in run.program:
        if entry["op"] == "launch" and (entry["name"], entry.get("duration_s")) != (KERNEL, kernel_s):
            what, why = "your timer launched a kernel of its own", f"{entry['name']!r} is not what fn launches"
        elif entry["op"] in ("host_work", "copy"):
            what, why = "your timer did work of its own", f"fn itself does no {entry['op']}"
        else:
            continue
        raise Wrong(what, why=why, next="call only fn, and nothing else that keeps the host or the device busy")
    fn = {"op": "launch", "name": KERNEL, "duration_s": kernel_s}
    require_bound(run, CaseProgram(named=[fn], own=("alloc",)))
