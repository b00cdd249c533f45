"""autotuner: which kernel for which problem, tried in a stream of calls, judged by what was launched and how long."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.recorded_programs import OWN, SYNCS, replayed, require_bound, written
from edl_labs.units import counted, percent, seconds
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.case_program import CaseProgram

TOLERANCE = 0.10  # promised in the lab's text
TRIED_AT = 4  # the call of a problem that tries the candidates, as the lab's text says
_WAITS = (*SYNCS, "elapsed_time")
_KEY = ("shape", "dtype", "layout")


@exercise("autotuner")
class AutotunerOfKernels(Exercise):
    """A tuner that tries kernels for problems that come often, by honest timing, and runs the fastest from then on.

    `Autotuner(candidates, gpu)` has `run(problem)`. The evidence is the program, with a mark before each call.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        gpu = VirtualGPU(_machine(given))
        request = _request(gpu)
        tuner = student.Autotuner(_candidates(given, gpu), gpu)
        for number in given["calls"]:
            gpu.host_work(0.0, writes=request)
            tuner.run({part: given["problems"][number][part] for part in _KEY})
        _end(gpu, request)
        return {"program": written(gpu.program)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = replayed(got["program"], _machine(case))
        calls = _by_call(run.program, case)
        _judge_work(case, calls)
        require_bound(run, _case_program(case))
        _judge_trials(case, calls)
        _judge_choices(case, calls)
        _judge_moments(case, calls)
        best_s = want.get("makespan_s")
        best_s = replayed(want["program"], _machine(case)).makespan_s if best_s is None else best_s
        _judge_time(case, calls, spent_s=run.makespan_s, best_s=best_s)

    def public_want(self, case: Any, want: Any) -> Any:
        """The reference's makespan."""
        return {"makespan_s": replayed(want["program"], _machine(case)).makespan_s}

    def format_case(self, case: Any) -> str:
        """How often each problem comes, and how long the candidates take on it."""
        often = Counter(case["calls"])
        lines = [f"modelled {case['chip']}, {counted(len(case['calls']), 'call')}; the candidates take"]
        for number, problem in enumerate(case["problems"][:8]):
            times = ", ".join(seconds(one) for one in problem["times_s"])
            name = f"{problem['shape']} {problem['dtype']} {problem['layout']}"
            lines.append(f"  {name}: {times}; called {counted(often[number], 'time')}")
        rest = len(case["problems"]) - 8
        return "\n".join([*lines, f"  and {counted(rest, 'more problem')}"] if rest > 0 else lines)


def _machine(case: Any) -> VirtualMachine:
    # Kernels are loaded at their first launch: that is what makes a first call cold.
    return VirtualMachine.of(case["chip"], context_init_s=0.0)


def _request(gpu: VirtualGPU) -> Any:
    return gpu.host_empty(8, name="request")


def _end(gpu: VirtualGPU, request: Any) -> None:
    gpu.host_work(0.0, writes=request)
    gpu.synchronize()


def _case_program(case: Any) -> CaseProgram:
    """The buffer of the marks, every candidate on every problem, and the end."""
    gpu = VirtualGPU(_machine(case))
    request, candidates = _request(gpu), _candidates(case, gpu)
    for candidate in candidates:
        for problem in case["problems"]:
            candidate({part: problem[part] for part in _KEY})
    last = len(gpu.program)
    _end(gpu, request)
    return CaseProgram(gpu.program[:1], gpu.program[1:last], gpu.program[last:], own=OWN)


def _kernel(candidate: int) -> str:
    return f"candidate {candidate}"


def _candidates(case: Any, gpu: VirtualGPU) -> list[Any]:
    times = {tuple(map(str, (one[part] for part in _KEY))): one["times_s"] for one in case["problems"]}

    def candidate(number: int) -> Any:
        def run(problem: Any) -> None:
            duration_s = times[tuple(str(problem[part]) for part in _KEY)][number]
            gpu.launch(_kernel(number), duration_s=duration_s)

        return run

    return [candidate(number) for number in range(len(case["problems"][0]["times_s"]))]


def _by_call(program: Any, case: Any) -> list[list[dict[str, Any]]]:
    """What each call issued."""
    calls: list[list[dict[str, Any]]] = []
    for entry in program:
        if entry["op"] == "host_work" and entry.get("writes"):
            calls.append([])
        elif calls:
            calls[-1] += [entry] * entry.get("times", 1)
    if len(calls) != len(case["calls"]) + 1:
        why = "the number of call marks in the program differs from the number of calls"
        raise Wrong("the program was changed", why=why, next="do not write to the host's buffers")
    return calls[:-1]


def _launched(call: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in call if entry["op"] == "launch"]


def _judge_work(case: Any, calls: list[list[dict[str, Any]]]) -> None:
    for at, (number, call) in enumerate(zip(case["calls"], calls, strict=True)):
        times = case["problems"][number]["times_s"]
        known = {(_kernel(one), time_s) for one, time_s in enumerate(times)}
        launched = _launched(call)
        if not launched:
            why = f"call {at} did not launch a kernel"
            then = "run a candidate in every call, including the trial"
            raise Wrong("your code did not run any candidate for a call", why=why, next=then)
        if any((entry["name"], entry.get("duration_s")) not in known for entry in launched):
            why = f"call {at} launched a kernel that does not belong to a candidate on its problem"
            then = "call candidate(problem) with the problem that was passed in"
            raise Wrong("your code computed a different problem", why=why, next=then)


def _trials(case: Any, calls: list[list[dict[str, Any]]]) -> Counter[int]:
    """How many calls of each problem launched more than one kernel."""
    return Counter(one for one, call in zip(case["calls"], calls, strict=True) if len(_launched(call)) > 1)


def _judge_trials(case: Any, calls: list[list[dict[str, Any]]]) -> None:
    trials = _trials(case, calls)
    if max(trials.values(), default=0) > 1:
        why = f"{counted(max(trials.values()), 'call')} with the same problem launched more than one kernel"
        raise Wrong(
            "your code makes more than one trial for a problem", why=why, next="keep the choice of the first trial"
        )


def _judge_choices(case: Any, calls: list[list[dict[str, Any]]]) -> None:
    """Wrong where a problem that comes often does not end with its fastest candidate."""
    often, last = Counter(case["calls"]), dict(zip(case["calls"], range(len(calls)), strict=True))
    for number, times in often.items():
        if times < TRIED_AT:
            continue
        took = case["problems"][number]["times_s"]
        chosen = _launched(calls[last[number]])[-1]["name"]
        if chosen != _kernel(took.index(min(took))):
            raise _choice(case, calls, number, chosen)


def _choice(case: Any, calls: list[list[dict[str, Any]]], number: int, chosen: str) -> Wrong:
    problem = case["problems"][number]
    name = f"{problem['shape']} {problem['dtype']} {problem['layout']}"
    why = f"the last call of {name} does not run its fastest candidate"
    mine = [call for one, call in zip(case["calls"], calls, strict=True) if one == number]
    trials = [call for call in mine if len({entry["name"] for entry in _launched(call)}) > 1]
    tried = {one for one, call in zip(case["calls"], calls, strict=True) if len(_launched(call)) > 1}
    if not tried:
        then = "try the candidates when a problem comes for the fourth time"
        return Wrong("your code tried no problem", why=why, next=then)
    if not trials:
        return _shared(case, number, tried, chosen, why)
    trial = trials[0]
    last = max(at for at, entry in enumerate(trial) if entry["op"] == "launch")
    behind = next((entry["op"] for entry in trial[last:] if entry["op"] in (*_WAITS, "now")), "now")
    if behind == "now":
        then = "a launch returns at once: wait each time before you read the clock"
        return Wrong(
            "your code timed launches, not kernels",
            why=f"the host does not wait between a launch and reading the clock; {why}",
            next=then,
        )
    if max(Counter(entry["name"] for entry in _launched(trial)).values()) == 1:
        then = "the first launch of a kernel loads it: run each candidate once before you time it"
        return Wrong("your timing includes the cold first call of a candidate", why=why, next=then)
    times = problem["times_s"]
    last_of = {one: _launched(call)[-1]["name"] for one, call in zip(case["calls"], calls, strict=True)}
    is_unused = all(last_of[one] == _kernel(0) for one in tried)
    if chosen == _kernel(times.index(max(times))) and _waits_first(trial) and not is_unused:
        return Wrong(
            "your code kept the slowest candidate", why=why, next="keep the candidate that takes the least time"
        )
    if chosen == _kernel(0) and _waits_first(trial):
        then = "look up the choice in every call after the trial"
        return Wrong(
            "your code does not use the result of the trial", why=f"the default is still used; {why}", next=then
        )
    waits = sum(entry["op"] in SYNCS for entry in trial)
    then = "make sure that the device is also idle when you read the clock for the first time"
    why = f"the trial has {counted(waits, 'wait')}; {why}"
    return Wrong("your timing of a trial includes other work", why=why, next=then)


def _waits_first(trial: list[dict[str, Any]]) -> bool:
    """Whether every reading of the clock finds the device idle: something waits between it and the launch before."""
    is_busy = True
    for entry in trial:
        if entry["op"] == "now" and is_busy:
            return False
        is_busy = entry["op"] == "launch" or (is_busy and entry["op"] not in SYNCS)
    return True


def _shared(case: Any, number: int, tried: set[int], chosen: str, why: str) -> Wrong:
    """What the key lacks, from the problem that was tried and whose choice this one has."""
    mine, often = case["problems"][number], Counter(case["calls"])
    several = sum(times >= TRIED_AT for times in often.values()) > 2
    for other in tried:
        theirs = case["problems"][other]
        differs = [part for part in _KEY if theirs[part] != mine[part]]
        is_theirs = chosen == _kernel(theirs["times_s"].index(min(theirs["times_s"])))
        if len(differs) == 1 and is_theirs and not (several and len(tried) == 1):
            return Wrong(
                f"in your code, two problems that differ only in their {differs[0]} share one choice",
                why=why,
                next="the fastest candidate depends on shape, dtype and layout: put all three into the key",
            )
    return Wrong(
        "in your code, different problems share one choice", why=why, next="put shape, dtype and layout into the key"
    )


def _judge_moments(case: Any, calls: list[list[dict[str, Any]]]) -> None:
    """Wrong where a problem is tried at another of its calls than the fourth."""
    came: Counter[int] = Counter()
    for number, call in zip(case["calls"], calls, strict=True):
        came[number] += 1
        if len(_launched(call)) == 1 or came[number] == TRIED_AT:
            continue
        problem = case["problems"][number]
        name = f"{problem['shape']} {problem['dtype']} {problem['layout']}"
        why = f"the candidates for {name} were tried at its call number {came[number]}"
        if came[number] < TRIED_AT:
            then = "count the calls of each problem, and try the candidates at the fourth call"
            raise Wrong("your code tried a problem before its fourth call", why=why, next=then)
        then = "the fourth call of a problem is the trial: add 1 to the count before you compare it"
        raise Wrong("your code tried a problem after its fourth call", why=why, next=then)


def _judge_time(case: Any, calls: list[list[dict[str, Any]]], *, spent_s: float, best_s: float) -> None:
    trials = _trials(case, calls)
    waits = sum(any(entry["op"] in SYNCS for entry in call) for call in calls)
    if waits > trials.total() + 1:
        why = f"number of calls that wait: {waits}; number of trials: {trials.total()}"
        raise Wrong("your code makes the host wait in calls that are not trials", why=why, next="wait only in trials")
    if spent_s <= (1 + TOLERANCE) * best_s:
        return
    slower = f"your calls take {seconds(spent_s)}, {percent(spent_s / best_s - 1)} more than with a good tuner"
    most = max(map(len, map(_launched, calls)))
    why = f"one call makes {counted(most, 'launch')}; {slower}"
    raise Wrong("your trials take too long", why=why, next="warm up each candidate once, and time it once")
