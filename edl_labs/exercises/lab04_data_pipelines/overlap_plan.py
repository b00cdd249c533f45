"""overlap_plan: prefetching on a VirtualGPU with few buffers, judged by its replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab04_data_pipelines.feeding_waits import ONE_WAIT, copies_of, host_waits, needless_order
from edl_labs.exercises.recorded_programs import OWN, replayed, require_bound, written
from edl_labs.units import percent, seconds
from edl_labs.virtual import Replay, ReplayError, VirtualGPU, VirtualMachine
from edl_labs.virtual.case_program import CaseProgram
from edl_labs.virtual.gpu.buffers import DEVICE, PAGEABLE, PINNED, Buffer

TOLERANCE = 0.05  # promised in the lab's text
_SAMPLE = 16  # bytes that stand for a batch on disk and for its result: enough to follow the data


@exercise("overlap_plan")
class OverlapPlan(Exercise):
    """Loading, copying and stepping at the same time with few buffers, within 5 % of the ideal.

    `student.feed(gpu, batches, nbytes=, slots=, load=, step=)` trains on all batches, loading ahead of the step.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        gpu = VirtualGPU(machine_of(given))
        _, results, load, step = parts_of(gpu, given)
        student.feed(gpu, len(given["load_s"]), nbytes=given["nbytes"], slots=given["slots"], load=load, step=step)
        # Whoever called reads the losses at once: are they there?
        _read_results(gpu, results)
        return {"program": written(gpu.program)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = replayed(got["program"], machine_of(case))
        _judge_work(run, case)
        require_bound(run, _case_program(case))
        _judge_memory(run, case)
        _judge_data(run, case)
        _judge_time(run, case)

    def public_want(self, case: Any, want: Any) -> Any:
        """The ideal makespan: the reference's program would be a schedule to copy."""
        return {"ideal_s": ideal_s(case)}

    def format_case(self, case: Any) -> str:
        count = len(case["load_s"])
        return (
            f"{count} batches, slots={case['slots']}: loading takes {seconds(sum(case['load_s']) / count)} on "
            f"average, a copy {seconds(case['nbytes'] / machine_of(case).link_byte_per_s)}, a step "
            f"{seconds(sum(case['step_s']) / count)}; ideal {seconds(ideal_s(case))}"
        )


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case, its context made and its kernels loaded."""
    return VirtualMachine.of(case["chip"], **case["parameters"]).warm()


def parts_of(gpu: VirtualGPU, case: Any) -> tuple[Buffer, Buffer, Callable[..., None], Callable[..., None]]:
    """The data on disk, room for one result a batch, and what loads and steps."""
    count = len(case["load_s"])
    disk, results = gpu.host_empty(_SAMPLE * count, name="disk"), gpu.empty(_SAMPLE * count, name="results")

    def load(buffer: Any, batch: int) -> None:
        gpu.host_work(case["load_s"][batch], reads=disk[_part(batch)], writes=buffer)

    def step(buffer: Any, batch: int) -> None:
        gpu.launch("step", duration_s=case["step_s"][batch], reads=buffer, writes=results[_part(batch)])

    return disk, results, load, step


def _read_results(gpu: VirtualGPU, results: Buffer) -> None:
    seen = gpu.host_empty(results.nbytes, name="seen")
    gpu.copy(seen, results, stream=gpu.default_stream())


def _case_program(case: Any) -> CaseProgram:
    """The buffers of the check, each batch's loading and step, and the reading of the results in the end."""
    gpu = VirtualGPU(machine_of(case))
    _, results, load, step = parts_of(gpu, case)
    first, host, spare = len(gpu.program), gpu.host_empty(case["nbytes"]), gpu.empty(case["nbytes"])
    for batch in range(len(case["load_s"])):
        load(host, batch)
        step(spare, batch)
    last = len(gpu.program)
    _read_results(gpu, results)
    return CaseProgram(gpu.program[:first], gpu.program[first:last], gpu.program[last:], own=OWN)


def _part(batch: int) -> slice:
    return slice(_SAMPLE * batch, _SAMPLE * (batch + 1))


def ideal_s(case: Any) -> float:
    """The makespan with memory for everything and calls that cost nothing: each engine goes on as soon as it can."""
    copy_s = case["nbytes"] / machine_of(case).link_byte_per_s
    loaded_s = copied_s = done_s = 0.0
    for load_s, step_s in zip(case["load_s"], case["step_s"], strict=True):
        loaded_s += load_s
        copied_s = max(copied_s, loaded_s) + copy_s
        done_s = max(done_s, copied_s) + step_s
    return done_s


def _judge_work(run: Replay, case: Any) -> None:
    count = len(case["load_s"])
    loads = [entry["duration_s"] for entry in run.program if entry["op"] == "host_work"]
    steps = [entry.get("duration_s") for entry in run.program if entry["op"] == "launch"]
    if loads != case["load_s"] or steps != case["step_s"]:
        raise Wrong(
            "your code does not call load() and step() once for each batch, in order",
            why=f"got {len(loads)} loads and {len(steps)} steps for {count} batches",
            next="call load(buffer, i) and step(buffer, i) for i = 0, 1, 2, …, and add no work of your own",
        )


def _judge_memory(run: Replay, case: Any) -> None:
    # The first two buffers and the last are the check's own.
    own = [entry for entry in run.program if entry["op"] == "alloc"][2:-1]
    if any(entry["where"] == PAGEABLE for entry in own):
        raise Wrong(
            "your code loads the batches into pageable memory",
            why="copies from pageable memory are staged, and each one blocks the host until it ends",
            next="allocate the host buffers with pin_memory=True",
        )
    for where, name in ((PINNED, "pinned memory"), (DEVICE, "device memory")):
        used = sum(entry["bytes"] for entry in own if entry["where"] == where)
        if used > case["slots"] * case["nbytes"]:
            raise Wrong(
                f"your code allocated more than {case['slots']} batches of {name}",
                why=f"it allocated {used / case['nbytes']:.3g} batches; an epoch has millions",
                next="reuse the same few buffers in turn",
            )


def _judge_data(run: Replay, case: Any) -> None:
    try:
        races, _ = run.races, run.contents(1)
    except ReplayError as error:
        raise Wrong(error.what, why=error.why, next="copy whole batches") from None
    slip = _buffer_slip(run, case)
    if slip and (races or not _is_right(run, case)):
        raise slip
    if races:
        roles = frozenset(_role(run.program[index]) for index in (races[0].first, races[0].second))
        raise Wrong(
            _RACES.get(roles, "in your program, two operations access the same bytes in no fixed order"),
            why=f"{_in_words(run.program, races[0].first)} and {_in_words(run.program, races[0].second)} use the same "
            "bytes, and no event, stream or host wait makes one finish before the other starts",
            next=_missing_order(run.program, races[0].first, races[0].second),
        )
    if not _is_right(run, case):
        raise Wrong(
            "in your program, a step works on the wrong batch",
            why="step(buffer, i) does not read the data that load(buffer, i) loaded",
            next="follow one batch from load() to step(): which buffers hold it, and which one does step() read?",
        )


def _is_right(run: Replay, case: Any) -> bool:
    return [(piece.start, piece.stop, piece.origin) for piece in run.contents(1)] == _serial(case)


def _buffer_slip(run: Replay, case: Any) -> Wrong | None:
    """Copies the wrong way, steps beside the device, or one buffer for all batches, if the program has them."""
    where = {entry["buffer"]: entry["where"] for entry in run.program if entry["op"] == "alloc"}
    copies = [run.program[index] for index in copies_of(run.program)]
    read = [part[0] for entry in run.program if entry["op"] == "launch" for part in entry.get("reads", ())]
    if any(where[entry["src"][0]] == DEVICE != where[entry["dst"][0]] for entry in copies):
        why, then = (
            "the loaded batches never reach the device",
            "call gpu.copy(destination, source): the source comes last",
        )
        return Wrong("your code copies batches from the device to the host", why=why, next=then)
    if any(where[buffer] != DEVICE for buffer in read):
        why = "step() must work on the device, and a later batch is loaded into that buffer"
        return Wrong(
            "your code passes a host buffer to step()",
            why=why,
            next="pass step() the device buffer that the copy filled",
        )
    made = sum(entry["op"] == "alloc" and entry["where"] == DEVICE for entry in run.program) - 1
    if len(set(read)) == 1 < min(case["slots"], made):
        why = (
            f"your code allocated {made}, but copies each batch into the same one, while a step may still be reading it"
        )
        return Wrong(
            "your code copies all batches into the same device buffer",
            why=why,
            next="use the slot's buffer on both sides",
        )
    return None


def _missing_order(program: Any, first: int, second: int) -> str:
    """What would bring two operations into order, from the event that was recorded behind the first."""
    behind = []
    for entry in program[first + 1 : second]:
        if entry["op"] in ("copy", "launch", "host_work"):
            break
        if entry["op"] == "record":
            behind.append(entry)
    awaited = _events([entry for entry in program[first + 1 : second] if entry["op"] in ("wait", "sync_event")])
    foreign = [entry for entry in behind if entry["stream"] != program[first].get("stream")]
    if foreign and len(foreign) == len(behind) and awaited & _events(foreign):
        return (
            f"the event after {_in_words(program, first)} was recorded in a different stream, so it does not mark the "
            "end of that operation: inside the same `with gpu.stream(...)`, call record() without another stream"
        )
    early = [entry for entry in _recorded_just_before(program, first) if entry["event"] in awaited - _events(behind)]
    if early:
        call = "gpu.copy()" if program[first]["op"] == "copy" else "step()"
        return (
            f"the event that is waited for was recorded before {_in_words(program, first)} was launched, so it does "
            f"not mark the end of that operation: call record() after {call}"
        )
    return "record an event after the first operation, and let a stream or the host wait for it before the second one"


def _recorded_just_before(program: Any, index: int) -> list[dict[str, Any]]:
    """The records in an operation's stream that stand before it, behind all other work."""
    found = []
    for entry in reversed(program[:index]):
        if entry["op"] in ("copy", "launch", "host_work"):
            break
        if entry["op"] == "record" and entry["stream"] == program[index].get("stream"):
            found.append(entry)
    return found


def _events(records: list[dict[str, Any]]) -> set[int]:
    return {entry["event"] for entry in records}


_RACES = {
    frozenset(("copy", "load")): "your program fills a host buffer again while it is still being copied",
    frozenset(("copy", "step")): "in your program, a step and a copy use the same device buffer in no fixed order",
    frozenset(("step", "results")): "in your program, the results are read before the last step is done",
    frozenset(("copy",)): "in your program, two copies use the same buffer in no fixed order",
}


def _in_words(program: Any, index: int) -> str:
    """An operation as the student knows it: what it does, and for which batch."""
    entry = program[index]
    role = _role(entry)
    if role == "results":
        return "reading the results after feed returned"
    before = sum(other["op"] == entry["op"] for other in program[:index])
    copies, steps = (sum(other["op"] == op for other in program) for op in ("copy", "launch"))
    # The check's own copy of the results comes last.
    if role == "copy" and copies - 1 != steps:
        return f"copy number {before}"
    return {"load": "the load of", "copy": "the copy of", "step": "the step of"}.get(role, role) + f" batch {before}"


def _role(entry: dict[str, Any]) -> str:
    if entry["op"] == "copy":
        return "results" if entry["src"][0] == 1 else "copy"
    return {"host_work": "load", "launch": "step"}.get(entry["op"], entry["op"])


def _serial(case: Any) -> list[tuple[int, int, str]]:
    """The origins of right results, from a program that does one thing after another."""
    gpu = VirtualGPU(machine_of(case))
    _, results, load, step = parts_of(gpu, case)
    host, inside = gpu.host_empty(case["nbytes"], pin_memory=True), gpu.empty(case["nbytes"])
    for batch in range(len(case["load_s"])):
        load(host, batch)
        gpu.copy(inside, host)
        step(inside, batch)
    _read_results(gpu, results)
    pieces = replayed(written(gpu.program), gpu.machine).contents(1)
    return [(piece.start, piece.stop, piece.origin) for piece in pieces]


def _judge_time(run: Replay, case: Any) -> None:
    best_s, spent_s = ideal_s(case), run.makespan_s
    if spent_s <= (1 + TOLERANCE) * best_s:
        return
    slower = (
        f"the program takes {seconds(spent_s)}, {percent(spent_s / best_s - 1)} more than the ideal {seconds(best_s)}"
    )
    if sum(entry["op"] == "synchronize" for entry in run.program) >= len(case["load_s"]):
        why = f"synchronize() is called once per batch, and nothing is loaded meanwhile: {slower}"
        raise Wrong("in your program, the host waits for the device in every step", why=why, next=ONE_WAIT)
    slip = host_waits(run.program, slower) or _buffer_slip(run, case) or needless_order(run.program, case, slower)
    if slip:
        raise slip
    raise Wrong(
        "the result is right, but the program is slower than it could be",
        why=slower,
        next="loading, copying and stepping can all run at the same time: which wait is too early or too long?",
    )
