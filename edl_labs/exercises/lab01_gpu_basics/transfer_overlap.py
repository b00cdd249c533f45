"""transfer_overlap: a schedule judged by its replay: what it computes, what orders it, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.recorded_programs import OWN, replayed, require_bound, written
from edl_labs.units import byte_count, counted, percent, seconds
from edl_labs.virtual import Race, Replay, ReplayError, VirtualGPU, VirtualMachine
from edl_labs.virtual.case_program import CaseProgram
from edl_labs.virtual.gpu.buffers import DEVICE, PAGEABLE, Buffer

KERNEL = "scale"
TOLERANCE = 0.05  # promised in the lab's text
_NO_BUFFER = -1  # no buffer has this number


@exercise("transfer_overlap")
class TransferOverlap(Exercise):
    """Copy in, compute and copy out in chunks that overlap, without a race, near the best known schedule.

    `student.run_overlapped(gpu, nbytes, load=, kernel=)` gives the host buffer that holds the result.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"result": 0, "program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        gpu = VirtualGPU(machine_of(given))
        result = student.run_overlapped(gpu, given["nbytes"], load=load, kernel=kernel_of(given))
        if not isinstance(result, Buffer):
            return {"result": _NO_BUFFER, "program": written(gpu.program)}
        if result.where != DEVICE:
            # Whoever called the function reads the result at once: is it there?
            gpu.host_work(0.0, reads=result)
        return {"result": result.index, "program": written(gpu.program)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["result"] == _NO_BUFFER:
            raise Wrong(
                "your function did not return a buffer",
                why="the caller needs the buffer with the result",
                next="return the host buffer that the result was copied to",
            )
        machine = machine_of(case)
        run = replayed(got["program"], machine)
        _refuse_other_work(run, case, got["result"])
        _judge_data(run, case, got["result"])
        known = want.get("makespan_s")
        _judge_time(run, best_s=replayed(want["program"], machine).makespan_s if known is None else known)

    def public_want(self, case: Any, want: Any) -> Any:
        """The reference's makespan: its program would be a schedule to copy."""
        return {"makespan_s": replayed(want["program"], machine_of(case)).makespan_s}

    def format_case(self, case: Any) -> str:
        machine, nbytes = machine_of(case), case["nbytes"]
        return (
            f"{byte_count(nbytes)} on a modelled {machine.name}: each copy of it takes "
            f"{seconds(nbytes / machine.link_byte_per_s)}, the kernel {seconds(kernel_s(case, nbytes))}; "
            f"issuing a copy costs {seconds(machine.copy_overhead_s)}, a launch {seconds(machine.launch_overhead_s)}"
        )


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case, its context already made."""
    return VirtualMachine.of(case["chip"], **case["parameters"]).warm()


def load(gpu: VirtualGPU, buffer: Buffer) -> None:
    """Put the input into a host buffer, as a data loader would."""
    gpu.host_work(0.0, writes=buffer)


def kernel_s(case: Any, nbytes: int) -> float:
    """How long the kernel runs on so many bytes."""
    return float(case["kernel_floor_s"] + nbytes * case["kernel_s_per_byte"])


def kernel_of(case: Any) -> Callable[[VirtualGPU, Any, Any], None]:
    """The kernel of a case: it launches on the current stream of the GPU that it is given."""

    def kernel(gpu: VirtualGPU, dst: Any, src: Any) -> None:
        gpu.launch(KERNEL, duration_s=kernel_s(case, src.nbytes), reads=src, writes=dst, elementwise=True)

    return kernel


def _refuse_other_work(run: Replay, case: Any, result: int) -> None:
    places = _places(run)
    sizes = {stop - start for entry in run.program for _, start, stop in entry.get("reads", ())}
    for entry in run.program:
        if entry["op"] != "launch":
            continue
        if not _is_the_kernel(entry, case):
            why = f"a launch of {entry['name']!r} is not what kernel(gpu, dst, src) issues"
            raise Wrong(
                "your program launches a kernel of its own",
                why=why,
                next="launch only by calling kernel, with dst and src of the same size",
            )
        if any(places[number] != DEVICE for number, _, _ in entry["reads"] + entry["writes"]):
            why = "the kernel would then fetch every byte over the link, at the link's speed"
            raise Wrong(
                "your code gives host memory to the kernel", why=why, next="copy the data to a device buffer first"
            )
    kernel = {"op": "launch", "name": KERNEL, "elementwise": True}
    named = [{**kernel, "duration_s": kernel_s(case, size)} for size in sizes]
    require_bound(run, CaseProgram(named=named, own=OWN))
    if places[result] == DEVICE:
        why = f"buffer {result} is in the device's memory, which the host cannot read"
        raise Wrong("your function returned a device buffer", why=why, next="return the host buffer with the result")
    ends = [entry for entry in run.program if entry["op"] == "host_work"][-1:]
    if not ends or ends[0].get("reads") != [[result, 0, case["nbytes"]]]:
        why = f"expected a host buffer of {case['nbytes']:,} bytes"
        raise Wrong(
            "your function did not return the whole result", why=why, next="return the buffer that contains all of it"
        )


def _places(run: Replay) -> list[str]:
    """Where each buffer of the program lies."""
    return [entry["where"] for entry in run.program if entry["op"] == "alloc"]


def _is_the_kernel(entry: dict[str, Any], case: Any) -> bool:
    read, write = entry.get("reads", []), entry.get("writes", [])
    sizes = {stop - start for _, start, stop in read + write}
    whole = len(read) == len(write) == len(sizes) == 1 and entry.get("elementwise") is True
    return whole and entry["name"] == KERNEL and entry.get("duration_s") == kernel_s(case, *sizes)


def _judge_data(run: Replay, case: Any, result: int) -> None:
    try:
        races, pieces = run.races, run.contents(result)
    except ReplayError as error:
        raise Wrong(error.what, why=error.why, next="use fewer and larger chunks") from None
    if races:
        raise _race(run, races[0])
    right = _serial(case)
    wrong = [piece for piece in pieces if piece.origin != right]
    if wrong:
        missing = sum(piece.stop - piece.start for piece in wrong)
        raise Wrong(
            "part of the result is wrong",
            why=f"{missing:,} of {case['nbytes']:,} bytes are wrong; from byte {wrong[0].start} on, they "
            "hold data from "
            f"{wrong[0].text}",
            next="copy each part to the device, run the kernel on it once, and copy it back; the last "
            "part may be smaller",
        )


def _serial(case: Any) -> str:
    """The origin of each byte of a right result, from a program that does one thing after another."""
    gpu, nbytes = VirtualGPU(machine_of(case)), case["nbytes"]
    source, inside, result = gpu.host_empty(nbytes), gpu.empty(nbytes), gpu.host_empty(nbytes)
    load(gpu, source)
    gpu.copy(inside, source)
    kernel_of(case)(gpu, inside, inside)
    gpu.copy(result, inside)
    return replayed(written(gpu.program), gpu.machine).contents(result.index)[0].origin


def _slow_calls(run: Replay, parts: int) -> tuple[str, str, str] | None:
    """Calls that hold the host up once a part, so that the next part is issued late."""
    copies = [entry for entry in run.program if entry["op"] == "copy"]
    blocking = [entry for entry in copies if not entry["non_blocking"]]
    if len(blocking) >= parts > 1:
        ways = {_role(run, entry) for entry in blocking}
        which = (
            f"in your program, each {_NAMES[ways.pop()]} is" if len(ways) == 1 else "your program repeatedly waits for"
        )
        return (
            f"{which} a blocking copy",
            "the host waits for each copy to end before it issues anything else",
            _NON_BLOCKING,
        )
    last = max(at for at, entry in enumerate(run.program) if entry["op"] in ("copy", "launch"))
    waits = sum(entry["op"] in ("synchronize", "sync_stream", "sync_event") for entry in run.program[:last])
    if parts > 1 and waits >= parts - 1:
        why = (
            f"the host makes {counted(waits, 'synchronisation')} "
            f"before it has issued the last of {counted(parts, 'part')}"
        )
        return (
            "your program waits for the device after every part",
            why,
            "wait once, after the last part has been issued",
        )
    return None


_TWO_STREAMS = (
    "two streams cannot keep three engines busy: how many parts must be in progress at once, so that both "
    "copies and the kernel can run at the same time?"
)
_PARTS = (
    "compare different numbers of parts: one more part costs the host three calls, one part fewer leaves "
    "engines idle for longer at the start and at the end"
)
_NON_BLOCKING = "copy with non_blocking=True, and let streams or events keep the order"


def _race(run: Replay, race: Race) -> Wrong:
    first, second = run.program[race.first], run.program[race.second]
    what = _RACES.get(
        (_role(run, first), _role(run, second)),
        "in your program, two operations access the same bytes, and nothing orders them",
    )
    return Wrong(what, why=f"{race}", next=_order(run, race))


def _order(run: Replay, race: Race) -> str:
    """What would bring the two operations of a race into order, from what the program has between them."""
    first, second = run.program[race.first], run.program[race.second]
    if second["op"] == "host_work" and second.get("writes"):
        return "load the input first: the host writes these bytes after the copy that reads them was issued"
    if first.get("stream") == second.get("stream") or "stream" not in first or "stream" not in second:
        return _JOIN
    waits = [e["event"] for e in run.program[: race.second] if e["op"] == "wait"]
    early = [e for e in run.program[: race.first] if e["op"] == "record" and e["stream"] == first["stream"]]
    late = [e for e in run.program[race.first : race.second] if e["op"] == "record" and e["stream"] == first["stream"]]
    if not late and any(e["event"] in waits for e in early):
        return (
            "your program records the event before it issues this work, so the event does not mark the end "
            "of the work: record it afterwards"
        )
    if any(e["event"] in waits for e in late):
        return (
            f"your program waits for the event, but not in the stream in which the "
            f"{_NAMES[_role(run, second)]} runs: wait there"
        )
    return _JOIN


_JOIN = (
    "put all work on one part into one stream, or let one stream wait for an event of the "
    "other; the host must also wait before it reads the result"
)


_RACES = {
    ("copy in", "kernel"): "in your program, a kernel may start before its data have arrived",
    ("kernel", "copy out"): "in your program, a copy back may start before its kernel is done",
    ("copy out", "host"): "your program reads the result before its copy has ended",
    ("copy out", "copy in"): "your program fills a device buffer again while it is still in use",
    ("kernel", "copy in"): "your program fills a device buffer again while it is still in use",
    ("kernel", "kernel"): "in your program, two kernels access the same bytes, and nothing orders them",
}


_NAMES = {
    "copy in": "copy to the device",
    "copy out": "copy back to the host",
    "copy": "copy",
    "kernel": "kernel",
    "host": "host",
}


def _role(run: Replay, entry: dict[str, Any]) -> str:
    if entry["op"] != "copy":
        return "kernel" if entry["op"] == "launch" else "host"
    places = _places(run)
    from_device, to_device = (places[entry[side][0]] == DEVICE for side in ("src", "dst"))
    return {(False, True): "copy in", (True, False): "copy out"}.get((from_device, to_device), "copy")


def _pageable_copies(run: Replay) -> str:
    """Which copies have pageable memory on one side: those of one direction, or of both."""
    places = _places(run)
    copies = [entry for entry in run.program if entry["op"] == "copy"]
    roles = {_role(run, one) for one in copies if PAGEABLE in (places[one["src"][0]], places[one["dst"][0]])}
    if roles in ({"copy in"}, {"copy out"}):
        return _NAMES[roles.pop()].replace("copy", "copies", 1)
    return "copies" if roles else ""


def _judge_time(run: Replay, *, best_s: float) -> None:
    spent_s, line = run.makespan_s, run.timeline
    if spent_s <= (1 + TOLERANCE) * best_s:
        return
    slower = (
        f"your schedule takes {seconds(spent_s)}, {percent(spent_s / best_s - 1)} more than the best known schedule"
    )
    pageable = _pageable_copies(run)
    if pageable:
        raise Wrong(
            f"your {pageable} go through pageable memory",
            why=f"such copies are staged, and each one blocks the host until it ends: {slower}",
            next="allocate the host buffers of these copies with pin_memory=True",
        )
    parts = run.counts["launch"]
    if line.busy_s("call") > 0.8 * spent_s:
        raise Wrong(
            "your program has so many parts that the host cannot keep up",
            why=f"with {counted(parts, 'part')} the host is busy issuing calls nearly all the time: {slower}",
            next="each part costs the host three calls: how many parts can the host issue while the "
            "slowest engine works?",
        )
    known = _slow_calls(run, parts)
    if known is not None:
        what, why, then = known
        raise Wrong(what, why=f"{why}: {slower}", next=then)
    used = {entry["stream"] for entry in run.program if entry["op"] in ("copy", "launch")}
    if line.hidden_copy_fraction < 0.05:
        why, then = f"hardly any kernel runs during a copy: {slower}", "put neighbouring parts into different streams"
        if parts == 1:
            why, then = (
                f"all the data are in one part, and each step waits for the previous one: {slower}",
                "cut the data into parts",
            )
        elif len(used) == 1:
            why = (
                f"all {counted(parts, 'part')} go through one stream, where operations run one after another: {slower}"
            )
        else:
            then += ", and use non-blocking copies"
        raise Wrong("nothing overlaps in your program", why=why, next=then)
    raise Wrong(
        "the result is right and work overlaps, but your schedule is slower than it could be",
        why=f"with {counted(parts, 'part')} in {counted(len(used), 'stream')}, {slower}",
        next=_TWO_STREAMS if parts > len(used) == 2 else _PARTS,
    )
