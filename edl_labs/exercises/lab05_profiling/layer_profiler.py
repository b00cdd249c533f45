"""layer_profiler: hooks around every module, judged by a trace whose times are readings of the replayed program."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from typing import Any, ClassVar, Literal

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.asked_form import in_form
from edl_labs.checks.evidence_form import Misfit, answer_text
from edl_labs.checks.plain_forms import plain_form
from edl_labs.errors import Wrong
from edl_labs.exercises.lab05_profiling.timed_model import timed_model
from edl_labs.exercises.recorded_programs import replayed, require_bound, written
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.case_program import CaseProgram

PHASES = ("forward", "backward")
_END = "profiler closed"
_MAX_EVENTS = 5000  # many times a right trace's, and still compared at once
_RETURNED = "a hook returned a value, which replaces the module's input or output; hooks must return None"

_COLUMNS = ("calls", "forward_self_s", "forward_total_s", "backward_self_s", "backward_total_s")


@exercise("layer_profiler")
class LayerProfiler(Exercise):
    """Seconds of every module, forward and backward, with and without what is inside, and a trace file of them.

    `LayerProfiler(model, clock)`, a context manager with `table()`, seconds by module, and `trace()`, a file.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"table": [["", 0, 0.0, 0.0, 0.0, 0.0]], "trace": "", "program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        import torch

        gpu = VirtualGPU(_machine(given))
        model = timed_model(given["plan"], gpu)

        def train() -> None:
            try:
                model(torch.ones(2, requires_grad=True)).sum().backward()
            except (AttributeError, TypeError, RuntimeError) as error:
                if _replaced(error):
                    raise Misfit(f"{_RETURNED} ({str(error)[:80]})") from error
                raise

        profiler = student.LayerProfiler(model, gpu.clock)
        with profiler as inside:
            for _ in range(given["steps"]):
                train()
            for _ in range(given["evaluations"]):
                model(torch.ones(2, requires_grad=True))
        used = profiler if inside is None else inside
        gpu.launch(_END, duration_s=0.0)
        train()
        table = in_form(used.table(), dict[str, dict[Literal[_COLUMNS], Any]])  # type: ignore[valid-type]
        rows = sorted([name, *(table[name][column] for column in _COLUMNS)] for name in table)
        return {"table": rows, "trace": _text(used.trace()), "program": written(gpu.program)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = replayed(got["program"], _machine(case))
        _refuse_own_work(run, case)
        _judge_closed(run, case["steps"] + case["evaluations"])
        try:
            _judge_table(got["table"], want["table"])
        except Wrong as wrong:
            raise (
                _known_table(got["table"], want["table"], is_read=any(r.op == "now" for r in run.readings)) or wrong
            ) from None
        _judge_trace(
            got["trace"], want["trace"], times_s=[reading.value for reading in run.readings if reading.op == "now"]
        )

    def public_want(self, case: Any, want: Any) -> Any:
        """The table and the trace; the program is not needed to compare."""
        return {"table": want["table"], "trace": want["trace"]}

    def format_case(self, case: Any) -> str:
        lines = [f"launch_overhead_s = {1e6 * case['launch_overhead_s']:.1f} µs, {case['steps']} steps; own kernels:"]
        return "\n".join(lines + list(_shown("model", case["plan"], 1)))


def _replaced(error: BaseException) -> bool:
    """Whether the model or torch failed on a value that a hook must have returned."""
    place, names = error.__traceback__, [""]
    while place is not None:
        names.append(place.tb_frame.f_globals.get("__name__", ""))
        place = place.tb_next
    return names[-1].split(".")[0] in ("torch", "edl_labs") and "argument" not in str(error)


def _machine(case: Any) -> VirtualMachine:
    return VirtualMachine(launch_overhead_s=case["launch_overhead_s"])


def _text(trace: Any) -> str:
    """The trace as the text of a file; what cannot be JSON becomes a text that is not JSON either."""
    try:
        text = json.dumps(trace, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return text[:2_000_000]


def _plain(value: Any) -> Any:
    """What JSON has for numpy's and torch's numbers, arrays and lazy sequences, as for what travels to the judge."""
    form = plain_form(value, most=_MAX_EVENTS)
    return form.tolist() if hasattr(form, "tolist") else form


def _launches(entries: Any) -> list[tuple[Any, Any]]:
    return [(e["name"], e["duration_s"]) for e in entries for _ in range(e.get("times", 1)) if e["op"] == "launch"]


def _expected(plan: Any) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """The kernels of one forward pass and of its backward pass, in order."""
    forward, backward = [("forward", plan["forward_s"])], [("backward", plan["backward_s"])]
    for _, child in plan["children"]:
        for _ in range(child.get("times", 1)):
            down, up = _expected(child)
            forward, backward = forward + down, up + backward
    return forward, backward


def _refuse_own_work(run: Any, case: Any) -> None:
    forward, backward = _expected(case["plan"])
    step = forward + backward
    if _launches(run.program) != step * case["steps"] + forward * case["evaluations"] + [
        (_END, 0.0)
    ] + step or run.counts.get("host_work"):
        raise Wrong(
            "your profiler changes the model's own work",
            why="with your profiler, kernels are added, left out, or run in a different order",
            next="let the hooks only read a clock, and return nothing",
        )
    kernels = [*step, (_END, 0.0)]
    named = [{"op": "launch", "name": name, "duration_s": took_s} for name, took_s in dict.fromkeys(kernels)]
    require_bound(run, CaseProgram(named=named, own=("alloc", "copy")))


def _judge_closed(run: Any, runs: int) -> None:
    end = next(index for index, entry in enumerate(run.program) if entry.get("name") == _END)
    late = sum(entry["op"] == "now" for entry in run.program[end:])
    if not late:
        return
    why, then = (
        "hooks were still registered",
        "keep the handles that register_... returns, and remove each of them in __exit__",
    )
    # A step has forward and backward readings, an evaluation fewer: the mean is no more than a step's.
    if late < sum(entry["op"] == "now" for entry in run.program[:end]) / max(1, runs):
        why = f"the clock was read {late} times, fewer than inside the block: some hooks were removed, but not all"
        then = "keep the handles of all modules' hooks, not only those of the last one"
    what = "your profiler still reads the clock after it was closed"
    raise Wrong(what, why=f"the model ran once more after the with block, and {why}", next=then)


def _judge_table(got: Any, want: Any) -> None:
    mine, rights = ({row[0]: row[1:] for row in table} for table in (got, want))
    if set(mine) != set(rights):
        odd = sorted(set(mine) ^ set(rights))[0]
        raise Wrong(
            f"your table is missing a row, or has an extra one: {odd[:40]!r}",
            why='each module of named_modules() needs one row under its name; the outermost one is called "model"',
            next="register hooks for all of model.named_modules(), including containers",
        )
    for name, right in sorted(rights.items(), key=lambda item: item[0].count(".")):
        for place, column in enumerate(
            ("calls", *(f"{phase}_{kind}" for phase in PHASES for kind in ("self_s", "total_s")))
        ):
            if not close(mine[name][place], right[place], rtol=1e-6, atol=1e-12):
                raise _table_symptom(name, column, said=mine[name][place], right=right)


def _known_table(got: Any, want: Any, *, is_read: bool) -> Wrong | None:
    """What all rows together show: another clock, phases that are exchanged, times taken off too far out."""
    if not is_read:
        why = (
            "the recorded program contains no reading of `clock`, so the times in the table come from a different clock"
        )
        return Wrong("your profiler never read the given clock", why=why, next="read `clock` in every hook")
    mine, rights = ({row[0]: row[1:] for row in table} for table in (got, want))
    if set(mine) != set(rights) or any(type(value) not in (int, float) for row in mine.values() for value in row):
        return None
    if all(row[0] == row[2] == 0 < row[4] for row in mine.values()):
        why = "no module has a call or forward time, but every module has backward time"
        then = (
            "bind the loop's variable, for example with `partial`: a function that is created in a loop uses the "
            "variable's last value when it runs later"
        )
        return Wrong("forward passes were recorded as backward passes", why=why, next=then)
    off = [_off_all_above(name, rights, phase) for phase in (1, 3) for name in rights]
    have, own = ([side[name][phase] for phase in (1, 3) for name in rights] for side in (mine, rights))
    if not all(close(one, other, rtol=1e-6, atol=1e-12) for one, other in zip(have, own, strict=True)) and all(
        close(one, other, rtol=1e-6, atol=1e-12) for one, other in zip(have, off, strict=True)
    ):
        why = "each of your self times is the total minus the totals of all modules inside, at any depth"
        then = "subtract only the modules directly inside: their totals already include all deeper ones"
        return Wrong("your code subtracts a module's time from all modules around it", why=why, next=then)
    return None


def _off_all_above(name: str, rights: dict[str, list[float]], phase: int) -> float:
    """A total less those of everything inside; the outermost module holds all others."""
    inside = [other for other in rights if other != name and (name == "model" or other.startswith(f"{name}."))]
    return rights[name][phase + 1] - sum(rights[other][phase + 1] for other in inside)


def _table_symptom(name: str, column: str, *, said: Any, right: list[float]) -> Wrong:
    place = f"{column} of {name} is {answer_text(said)}; the earlier columns and modules are right"
    calls, forward_self, forward_total, backward_self, backward_total = right
    if column == "calls":
        return Wrong(
            "your table has the wrong number of calls for a module",
            why=place,
            next="count one call for each forward pass through the module",
        )
    phase = "forward" if column.startswith("forward") else "backward"
    own, total = (forward_self, forward_total) if phase == "forward" else (backward_self, backward_total)
    if column.endswith("self_s") and close(said, total):
        return Wrong(
            "a self time in your table includes the time of the modules inside",
            why=place,
            next="when a module ends, add its time to what the module around it has to subtract",
        )
    if not said and phase == "backward":
        return Wrong(
            "in your table, a module's backward pass takes no time",
            why=place,
            next="start timing the pass in full_backward_pre hooks, and stop in full_backward hooks",
        )
    whole = own if column.endswith("self_s") else total
    if calls > 1 and type(said) in (int, float) and close(said * calls, whole, rtol=0.1):
        return Wrong(
            "a module's row in your table contains only one of its calls",
            why=place,
            next="add up the times of all calls",
        )
    if type(said) in (int, float) and 0 < said < 0.5 * whole:
        return Wrong(
            "your hooks read the clock before the device had finished a module's work",
            why=f"{place}; a launch returns long before its kernel ends",
            next="wait for the device before each reading of the clock",
        )
    return Wrong(
        "your time of a module is wrong",
        why=place,
        next="go through one module by hand: which hook runs when, and what is on the stack then?",
    )


def _judge_trace(text: str, want: str, *, times_s: list[float]) -> None:
    mine, rights = _events(text), _events(want)
    if len(mine) > _MAX_EVENTS or [event[:2] for event in mine] != [event[:2] for event in rights]:
        raise Wrong(
            "your trace does not contain exactly one event for each call of each module",
            why=f"got {len(mine)} complete events; expected {len(rights)}, with the names and cats of the task",
            next='write one event with ph "X" for the forward and one for the backward pass of each call, under the '
            "module's name",
        )
    known = sorted(times_s)
    for (phase, name, start, spent), right in zip(mine, rights, strict=True):
        if not close(spent, right[3], rtol=1e-6, atol=1e-3) or not close(start, right[2], rtol=1e-6, atol=1e-3):
            raise Wrong(
                "an event of your trace has the wrong `ts` or `dur`",
                why=f"in your trace, the {phase} of {name} has ts {start:.6g} and dur {spent:.6g}",
                next="give both in microseconds: `ts` is when the event began, and `dur` is how long it lasted",
            )
        if not all(_near(known, 1e-6 * moment) for moment in (start, start + spent)):
            raise Wrong(
                "an event of your trace begins or ends at a time that the clock never showed",
                why=f"the {phase} of {name} has times that are not readings of the given clock",
                next="compute `ts` and `dur` from readings of clock.now_s() in the hooks",
            )


def _events(text: str) -> list[tuple[str, str, float, float]]:
    """(phase, name, start, duration) of the complete events, in order; Wrong when the file is not a trace."""
    try:
        trace = json.loads(text)
    except ValueError:
        trace = None
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise _no_trace("it is not a JSON object with a list under traceEvents")
    found = []
    for event in events:
        if event.get("ph") == "X":
            found.append(_event(event))
        elif event.get("ph") not in ("M", "B", "E", "i", "I", "C", "s", "f", "t", "b", "e", "n"):
            raise _no_trace(f"one event has the unknown ph {str(event.get('ph'))[:20]!r}")
    return sorted(found)


def _event(event: dict[str, Any]) -> tuple[str, str, float, float]:
    for key in ("ts", "dur"):
        value: Any = event.get(key)
        if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
            raise _no_trace(f"a complete event needs a number of at least 0 as its {key}, not {str(value)[:20]!r}")
    if not all(type(event.get(key)) in (int, str) or _is_whole(event.get(key)) for key in ("pid", "tid")):
        raise _no_trace("a complete event needs a pid and a tid, which identify its process and its row")
    name, phase = event.get("name"), event.get("cat")
    if type(name) is not str or phase not in PHASES:
        raise _no_trace(f'a complete event needs a name, and the cat "forward" or "backward", not {str(phase)[:20]!r}')
    return str(phase), name, float(event["ts"]), float(event["dur"])


def _is_whole(value: Any) -> bool:
    return type(value) is float and value.is_integer()


def _no_trace(why: str) -> Wrong:
    return Wrong(
        "a trace viewer cannot open your trace",
        why=why,
        next='return {"traceEvents": [{"name", "cat", "ph": "X", "ts", "dur", "pid", "tid"}, ...]} from trace()',
    )


def _near(times_s: list[float], moment_s: float) -> bool:
    at = bisect_left(times_s, moment_s)
    return any(abs(time_s - moment_s) < 2e-9 for time_s in times_s[max(0, at - 1) : at + 1])


def _shown(name: str, plan: Any, depth: int) -> Any:
    extra = f", called {plan['times']} times" if plan.get("times", 1) > 1 else ""
    extra += ", residual" if plan.get("residual") else ""
    spent = f"{1e6 * plan['forward_s']:.1f} µs forward, {1e6 * plan['backward_s']:.1f} µs backward"
    yield f"{'  ' * depth}{name}: {spent}{extra}"
    for child, inside in plan["children"]:
        yield from _shown(child, inside, depth + 1)
