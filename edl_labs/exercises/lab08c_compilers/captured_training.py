"""capture: a training loop that replays a captured step, judged by its program: what it trained on, and how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.recorded_programs import OWN, SYNCS, replayed, require_bound, written
from edl_labs.units import byte_count, counted, percent, seconds
from edl_labs.virtual import Race, Replay, ReplayError, VirtualGPU, VirtualMachine
from edl_labs.virtual.case_program import CaseProgram
from edl_labs.virtual.gpu.buffers import DEVICE, Buffer
from edl_labs.virtual.gpu.dataflow import contents
from edl_labs.virtual.gpu.two_towers import LOSS_BYTES, TowersPlan, TwoTowers

TOLERANCE = 0.10  # promised in the lab's text
_MOST_WAITS = 2  # one at the end, and one around the warm-up, as the docs have it
_NO_BUFFER = -1  # no buffer has this number
_TOWERS = ("image", "text")
_ORDER_THEM = "copy in the stream in which you replay, or make one of the two streams wait for the other"


@exercise("capture")
class Capture(Exercise):
    """A captured training step, replayed for every batch: right weights and losses, in little more than the best time.

    `student.captured_train(gpu, towers, batches)` gives the host buffer with the losses. The evidence is the program.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"result": 0, "program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        gpu = VirtualGPU(machine_of(given))
        towers, batches = made(gpu, given)
        result = student.captured_train(gpu, towers, list(batches))
        if not isinstance(result, Buffer):
            return {"result": _NO_BUFFER, "program": written(gpu.program)}
        if result.where != DEVICE:
            # Whoever called the function reads the losses at once: are they there?
            gpu.host_work(0.0, reads=result)
        return {"result": result.index, "program": written(gpu.program)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = replayed(got["program"], machine_of(case), graphs=True)
        _judge_kernels(run, case)
        _judge_races(run)
        right = _serial(case)
        _judge_training(run, case, right["weights"])
        _judge_losses(run, case, got["result"], right["losses"])
        _judge_waits(run)
        best_s = want.get("makespan_s")
        _judge_time(run, case, best_s=self.public_want(case, want)["makespan_s"] if best_s is None else best_s)

    def public_want(self, case: Any, want: Any) -> Any:
        """The reference's makespan: its program would be the answer."""
        return {"makespan_s": replayed(want["program"], machine_of(case), graphs=True).makespan_s}

    def format_case(self, case: Any) -> str:
        plan = case["plan"]
        return (
            f"{counted(case['batches'], 'batch')} of {byte_count(plan['batch_bytes'])} on a modelled {case['chip']}; "
            f"{plan['image_kernels']} kernels in the image tower, {plan['text_kernels']} in the text tower, "
            f"and {1 + plan['update_kernels']} in the update; each takes {seconds(plan['kernel_s'])}"
        )


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case, its context already made."""
    return VirtualMachine.of(case["chip"]).warm()


def made(gpu: VirtualGPU, case: Any) -> tuple[TwoTowers, list[Buffer]]:
    """The model of a case, and its batches in pinned memory."""
    towers, size = TwoTowers(gpu, TowersPlan(**case["plan"])), case["plan"]["batch_bytes"]
    return towers, [gpu.host_empty(size, pin_memory=True, name=f"batch {at}") for at in range(case["batches"])]


def _issued(run: Replay) -> Iterator[dict[str, Any]]:
    """Every entry of a program, and the nodes of what it captures."""
    for entry in run.program:
        yield entry
        yield from entry.get("nodes", ())


def _judge_kernels(run: Replay, case: Any) -> None:
    gpu = VirtualGPU(machine_of(case))
    towers, _ = made(gpu, case)
    first, inside = len(gpu.program), gpu.empty(case["plan"]["batch_bytes"])
    for part in (towers.image, towers.text):
        part(inside)
    towers.update()
    known = {entry["name"] for entry in gpu.program if entry["op"] == "launch"}
    for entry in _issued(run):
        if entry["op"] == "launch" and entry["name"] not in known:
            why = f"{entry['name']!r} is not one of the towers' kernels"
            what = "the program launches a kernel that does not belong to the towers"
            raise Wrong(what, why=why, next="launch kernels only by calling towers")
    require_bound(run, CaseProgram(gpu.program[:first], gpu.program[first:], own=OWN))
    _judge_set_up(run, [entry for entry in gpu.program[first + 1 :] if entry["op"] != "launch"])
    if not any(entry["op"] == "capture" for entry in run.program):
        kernels = sum(run.launches.values())
        why = f"the program launches {counted(kernels, 'kernel')} one by one"
        raise Wrong(
            "your program captures no graph",
            why=why,
            next="create g = gpu.CUDAGraph(), and issue a step inside `with gpu.graph(g): ...`",
        )


def _judge_set_up(run: Replay, wanted: list[dict[str, Any]]) -> None:
    """The first kernel comes right behind what a model's first call does, which no graph can hold."""
    ops = [entry["op"] for entry in run.program]
    first = min((ops.index(op) for op in ("launch", "capture") if op in ops), default=len(ops))
    facts = ("op", "duration_s", "bytes", "where")
    found, due = ([[one.get(fact) for fact in facts] for one in some] for some in (run.program[:first], wanted))
    if found[len(found) - len(due) :] != due:
        why = "the towers' first call sets up the libraries, but this program runs kernels without that call"
        raise Wrong("the program was changed", why=why, next="use the towers only through their own calls")


def _judge_races(run: Replay) -> None:
    try:
        races = run.races
    except ReplayError as error:
        raise Wrong(error.what, why=error.why, next="use fewer and larger parts of the buffers") from None
    if races:
        raise _race(run, races[0])


def _race(run: Replay, race: Race) -> Wrong:
    first, second = run.program[race.first], run.program[race.second]
    if second["op"] == "host_work":
        what = "your function returns before the copies of the losses have finished"
        return Wrong(what, why=f"{race}", next="wait once, after the last copy and before you return")
    places = [entry["where"] for entry in run.program if entry["op"] == "alloc"]
    if second["op"] == "copy" and places[second["dst"][0]] == DEVICE:
        what = "your program fills a static buffer again while a step may still read it"
        return Wrong(what, why=f"{race}", next=_ORDER_THEM)
    if second["op"] == "replay_graph" and first["op"] == "copy":
        what = "in your program, a replay may start before its batch has arrived"
        return Wrong(what, why=f"{race}", next=_ORDER_THEM)
    what = "in your program, two operations access the same bytes in no fixed order"
    then = "make one stream wait for the other, both before and after the work that overlaps"
    return Wrong(what, why=f"{race}", next=then)


def _judge_training(run: Replay, case: Any, right: str) -> None:
    """Wrong where the weights are not those of one step for each batch, in order."""
    towers, _ = made(VirtualGPU(machine_of(case)), case)
    if _origins(run, towers.weights.index) == right:
        return
    trained = _trained(run, case, towers)
    told = ", ".join("no batch" if one is None else str(one) for one in trained) or "none"
    raise _training(trained, list(range(case["batches"])), f"the steps used these batches: {told}")


def _training(trained: list[int | None], right: list[int], why: str) -> Wrong:
    if trained == right:
        why = "every batch was used, but some kernels of a step did not run, or ran in the wrong order"
        what = "in your program, a step does not run both towers and then the update"
        return Wrong(what, why=why, next="run both towers and then the update, in the capture as well")
    if None in trained:
        return Wrong(
            "your program runs a step on a buffer before any batch was copied to it",
            why=why,
            next="warm up on a batch, because the warm-up is a training step like any other",
        )
    later = trained[1:]
    if len(later) > 1 and len(set(later)) == 1:
        then = (
            "a replay reads the same addresses as the capture, and repeats every captured copy: "
            "copy each batch into the static buffer before its replay, outside the capture"
        )
        return Wrong("in your program, every replay trains on the same batch", why=why, next=then)
    known = [one for one in trained if one is not None]
    if sorted({*known}) == right and known == sorted(known):
        return Wrong(
            "your program uses a batch in more than one training step",
            why=why,
            next="the warm-up trains, but the capture does not: count the steps of each batch",
        )
    missing = [one for one in right if one not in trained]
    if missing and trained == [one for one in right if one not in missing]:
        return Wrong(
            "your program never uses one of the batches for training",
            why=why,
            next="nothing runs during a capture: replay the graph for the batch used in the capture too",
        )
    if trained[: len(right)] == [right[0], *right[:-1]]:
        return Wrong(
            "your program copies batches after the replay that should read them",
            why=why,
            next="copy each batch first, then replay",
        )
    what = "your program trains on the wrong batches"
    return Wrong(what, why=why, next="train on each batch once, in the given order")


def _trained(run: Replay, case: Any, towers: TwoTowers) -> list[int | None]:
    """The batch that each step read: its number, or None where the buffer held none."""
    first = towers.weights.index + 4  # weights, loss and two features come before the batches
    initial = {_origins(run, number, upto=0): at for at, number in enumerate(range(first, first + case["batches"]))}
    steps: list[int | None] = []
    reads: dict[int, int] = {}
    for at, entry in enumerate(run.program):
        if entry["op"] == "capture":
            reads[len(reads)] = next(_batches_read(entry["nodes"], towers), -1)
        elif entry["op"] == "replay_graph" and reads[entry["graph"]] >= 0:
            steps.append(initial.get(_origins(run, reads[entry["graph"]], upto=at + 1)))
        elif entry["op"] == "launch":
            steps += [initial.get(_origins(run, one, upto=at)) for one in _batches_read([entry], towers)]
    return steps


def _batches_read(entries: list[dict[str, Any]], towers: TwoTowers) -> Iterator[int]:
    """The buffers from which kernels of the image tower read a batch."""
    own = range(towers.weights.index, towers.weights.index + 4)
    for entry in entries:
        if entry.get("name") == "image":
            yield from (number for number, *_ in entry["reads"] if number not in own)


def _origins(run: Replay, number: int, *, upto: int | None = None) -> str:
    """Where the bytes of a buffer come from, at the end or before an entry."""
    made = [entry for entry in run.program if entry["op"] == "alloc"]
    program = run.program if upto is None else (*made, *_without_allocs(run.program[:upto]))
    return ";".join(f"{piece.start}:{piece.origin}" for piece in contents(program, number))


def _without_allocs(program: tuple[dict[str, Any], ...]) -> Iterator[dict[str, Any]]:
    return (entry for entry in program if entry["op"] != "alloc")


def _serial(case: Any) -> dict[str, Any]:
    """The origins of weights and losses when everything runs one after the other, batch by batch."""
    gpu = VirtualGPU(machine_of(case))
    towers, batches = made(gpu, case)
    inside = gpu.empty(case["plan"]["batch_bytes"])
    losses = gpu.host_empty(LOSS_BYTES * len(batches))
    for at, batch in enumerate(batches):
        gpu.copy(inside, batch)
        towers.image(inside)
        towers.text(inside)
        towers.update()
        gpu.copy(losses[LOSS_BYTES * at : LOSS_BYTES * (at + 1)], towers.loss)
    run = replayed(written(gpu.program), gpu.machine, graphs=True)
    return {
        "weights": _origins(run, towers.weights.index),
        "losses": [piece.origin for piece in run.contents(losses.index)],
    }


def _judge_losses(run: Replay, case: Any, result: int, right: list[str]) -> None:
    if result == _NO_BUFFER:
        why = "a list, a number or None is not a buffer, and `item` would make the host wait"
        then = "copy each loss to its place in a pinned host buffer, with non_blocking=True, and return that buffer"
        raise Wrong("your function did not return a host buffer", why=why, next=then)
    buffers = [entry for entry in run.program if entry["op"] == "alloc"]
    if buffers[result]["where"] == DEVICE:
        why = "the buffer is in the device's memory, which the host cannot read"
        raise Wrong("your function returned a buffer on the device", why=why, next="copy each loss to a host buffer")
    if buffers[result]["bytes"] != LOSS_BYTES * case["batches"]:
        size = buffers[result]["bytes"]
        why = f"the buffer has {size:,} bytes, but each of the {case['batches']} losses takes {LOSS_BYTES} bytes"
        raise Wrong("your buffer of losses has the wrong size", why=why, next="reserve one place for each batch")
    if _origins(run, result) == _origins(run, result, upto=0):
        why = "the returned buffer still has its initial contents"
        raise Wrong(
            "your program copies no loss to the buffer of losses", why=why, next="copy towers.loss after each step"
        )
    pieces = run.contents(result)
    if [piece.origin for piece in pieces] == right:
        return
    odd = next((piece.start for piece in pieces if piece.start % LOSS_BYTES), None)
    if odd is not None:
        why = f"a loss begins at byte {odd} of the buffer, in the middle of the place of another loss"
        raise Wrong(
            "in your buffer, the places of the losses overlap", why=why, next=f"write loss i at byte {LOSS_BYTES} * i"
        )
    # An origin is a computation and the distance of its bytes, which differs from place to place.
    different = len(set(_computations(piece.origin for piece in pieces)))
    if different < len(right):
        raise Wrong(
            "in your program, some losses are overwritten before they are copied out",
            why=f"the buffer has only {counted(different, 'different value')} for {len(right)} batches",
            next="every replay writes its loss to the same address: copy the loss to its own place before the next "
            "replay, outside the capture",
        )
    steps = {origin: at for at, origin in enumerate(_computations(right))}
    found = [steps.get(origin) for origin in _computations(piece.origin for piece in pieces)]
    told = ", ".join("no batch" if at is None else f"batch {at}" for at in found)
    raise Wrong(
        "your losses do not match the batches in order",
        why=f"the weights are right, but the losses in the buffer belong to: {told}",
        next="copy towers.loss to its own place after every step, including the first",
    )


def _computations(origins: Iterable[str]) -> list[str]:
    """Origins without the distances of their bytes."""
    return [origin.partition("[")[0] for origin in origins]


def _judge_waits(run: Replay) -> None:
    waits = sum(entry["op"] in SYNCS for entry in run.program)
    if waits > _MOST_WAITS:
        then = "wait only once, at the end; `item` waits as well"
        why = f"the program has {counted(waits, 'wait')}"
        raise Wrong("in your program, the host waits for the device too often", why=why, next=then)
    if run.blocking > waits:
        why = f"{counted(run.blocking - waits, 'call')} to copy() blocked the host until the device had finished"
        plain = sum(entry["op"] == "copy" and not entry["non_blocking"] for entry in run.program)
        if plain == run.blocking - waits:
            what = "your copies block the host because they do not pass non_blocking=True"
            raise Wrong(what, why=why, next="pass non_blocking=True to every copy")
        if not plain:
            then = "create the host buffer with pin_memory=True"
            raise Wrong("your copies block the host because the host buffer is pageable", why=why, next=then)
        raise Wrong("your copies block the host", why=why, next="use pinned memory and non_blocking=True")


def _judge_time(run: Replay, case: Any, *, best_s: float) -> None:
    spent_s = run.makespan_s
    if spent_s <= (1 + TOLERANCE) * best_s:
        return
    slower = f"the run takes {seconds(spent_s)}, {percent(spent_s / best_s - 1)} more than the best known program"
    captures = sum(entry["op"] == "capture" for entry in run.program)
    if captures > 1:
        why = (
            f"the program captures {captures} graphs, and a capture takes as long as launching all its kernels; "
            f"{slower}"
        )
        raise Wrong(
            "your program captures a graph more than once", why=why, next="capture once, then replay for every batch"
        )
    if sum(entry["op"] == "replay_graph" for entry in run.program) < case["batches"] - 1:
        why = f"the host launches the kernels of these steps one by one; {slower}"
        then = "run one step as the warm-up, and replay the graph for all others"
        raise Wrong("your program runs too many steps without the graph", why=why, next=then)
    if not _side_by_side(run):
        why = f"each tower fills only half of the SMs; {slower}"
        then = "let a side stream wait for the captured stream, and later the captured stream for the side stream"
        raise Wrong("in your program, the towers run one after the other", why=why, next=then)
    what = "your results are right, but your program is slower than necessary"
    raise Wrong(what, why=slower, next="for each batch, copy it, replay the graph once, and copy the loss")


def _side_by_side(run: Replay) -> bool:
    """Whether kernels of the two towers run at the same time."""
    spans = sorted((s for s in run.timeline.spans if s.name in _TOWERS and s.kind == "kernel"), key=lambda s: s.start_s)
    return any(one.name != two.name and two.start_s < one.end_s for one, two in pairwise(spans))
