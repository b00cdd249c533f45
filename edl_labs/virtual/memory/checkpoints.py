"""Where to checkpoint a chain of layers: programs in segments, and the placement of least time under a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualMemoryError, shown
from edl_labs.virtual.memory.tape.machine import Tape, TapeLayer
from edl_labs.virtual.memory.tape.replay import TapeReplay
from edl_labs.virtual.memory.tape.virtual_tape import VirtualTape
from edl_labs.virtual.program import Entry
from edl_labs.virtual.quantities import picoseconds


@dataclass(frozen=True, repr=False)
class Placement(Value):
    """What a step does with each layer of a chain: stretches that are kept, recomputed or offloaded, as a program.

    `kept`, `recomputed` and `offloaded` are numbers of layers; a recomputed stretch (start, stop) hands on the output
    of its last layer and runs forward again, whole, before its backward pass.
    """

    OMITTED = ("program",)

    kept: tuple[int, ...]
    recomputed: tuple[tuple[int, int], ...]
    offloaded: tuple[int, ...]
    replay: TapeReplay
    program: tuple[Entry, ...] = ()


def as_chain(tape: Tape) -> Tape:
    """The tape with each part that is not a chain (a residual block, branches) merged into one layer.

    >>> branch = [TapeLayer("a", 4, 2), TapeLayer("b", 4, 2), TapeLayer("add", 2, 2, inputs=(0, 1))]
    >>> [(layer.name, layer.activation_bytes) for layer in as_chain(Tape(tuple(branch))).layers]
    [('a', 4), ('b..add', 6)]
    """
    last_reads = [max(readers, default=-1) for readers in tape.consumers]
    # A cut stands before a layer where of all layers before it only its neighbour is read from there on.
    earlier = [-1, *accumulate(last_reads, max)]
    cuts = [i for i in range(1, len(last_reads)) if earlier[i - 1] < i <= last_reads[i - 1]]
    spans = pairwise([0, *cuts, len(last_reads)])
    merged = tuple(_merged(tape.layers[start:stop]) for start, stop in spans)
    return Tape(merged, tape.copy_byte_per_s, tape.resident_bytes, tape.name)


def segment_starts(layers: int, segments: int) -> tuple[int, ...]:
    """Where `checkpoint_sequential` starts its segments: equal ones, and the last one with what is left over."""
    if not (type(layers) is int and type(segments) is int and 1 <= segments <= layers):
        raise VirtualMemoryError(
            f"cannot split {shown(layers)} layers into {shown(segments)} segments",
            why="each segment needs at least one layer, and both numbers must be whole",
            next="use at least one segment, and at most as many as there are layers",
        )
    return tuple(range(0, layers // segments * segments, layers // segments))


def segmented(tape: Tape, segments: int) -> VirtualTape:
    """The step of `checkpoint_sequential`: all segments but the last one are recomputed.

    >>> tape = Tape.chain(64, activation_bytes=2, output_bytes=1)
    >>> [segmented(tape, count).replay().peak_bytes for count in (1, 4, 8, 16, 32)]
    [128, 35, 23, 23, 35]
    """
    starts = segment_starts(len(tape.layers), segments)
    return stepped(tape, tuple(pairwise(starts)))


def stepped(tape: Tape, recomputed: Sequence[tuple[int, int]], *, offloaded: Sequence[int] = ()) -> VirtualTape:
    """The step that recomputes the stretches `recomputed`, offloads the layers `offloaded` and keeps all others.

    A layer is offloaded when the next one has read it, and fetched one layer ahead of its use.
    """
    step, count = VirtualTape(_require_chain(tape)), len(tape.layers)
    inside = {i: stretch for stretch in recomputed for i in range(*stretch)}
    for i in range(count):
        step.forward(i, keep=i not in inside)
        if i and i - 1 in inside and i - 1 != inside[i - 1][1] - 1:
            step.drop(i - 1)
        if i - 1 in offloaded:
            step.offload(i - 1)
    _fetch(step, count - 2, offloaded)
    for i in reversed(range(count)):
        stretch = inside.get(i)
        # What the passes of this layer read comes in before them, and what the next one reads beside them.
        if stretch and i == stretch[1] - 1:
            _fetch(step, stretch[0] - 1, offloaded)
            for j in range(*stretch):
                step.recompute(j)
        if not stretch or i == stretch[0]:
            _fetch(step, i - 2, offloaded)
        step.backward(i)
    return step


def best_placement(tape: Tape, budget_bytes: int, *, offload: bool = False) -> Placement:
    """The placement of least time whose peak stays within `budget_bytes`; VirtualMemoryError where none does.

    Without `offload` it is the optimum over all ways to keep layers and to recompute stretches of them once each, by
    dynamic programming over (layers done, bytes held). With it, the layers from the first one on may be offloaded
    instead; each number of them is tried with the optimum for the rest, and the best replay counts.

    >>> tape = Tape.chain(4, activation_bytes=2, output_bytes=1, forward_s=1.0, backward_s=2.0)
    >>> best_placement(tape, 6).recomputed
    ((0, 2),)
    """
    _require_chain(tape)
    found = [_placed(tape, stretches) for stretches in _optimum(tape, budget_bytes, first=0)]
    for count in range(1, len(tape.layers)) if offload else ():
        offloaded = range(count)
        found += [_placed(tape, stretches, offloaded) for stretches in _optimum(tape, budget_bytes, first=count)]
    fitting = [one for one in found if one.replay.peak_bytes <= budget_bytes]
    if not fitting:
        raise VirtualMemoryError(
            f"no placement of checkpoints keeps the step of {tape.name} within {budget_bytes:,} bytes",
            why=f"{tape.resident_bytes:,} bytes are resident, and each backward pass also needs its layer's "
            "activations and input",
            next="use a larger budget or a smaller batch, or split the layers into smaller ones",
        )
    return min(fitting, key=lambda one: (one.replay.makespan_s, one.replay.peak_bytes))


def _placed(tape: Tape, stretches: Sequence[tuple[int, int]], offloaded: Sequence[int] = ()) -> Placement:
    step = stepped(tape, stretches, offloaded=offloaded)
    again = {i for stretch in stretches for i in range(*stretch)}
    kept = tuple(i for i in range(len(tape.layers)) if i not in again and i not in offloaded)
    return Placement(kept, tuple(stretches), tuple(offloaded), step.replay(), tuple(step.program))


def _optimum(tape: Tape, budget: int, *, first: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """The stretches to recompute of the layers from `first` on, of least time within `budget`; nothing where none fit.

    A state is (bytes held when a layer is reached, picoseconds recomputed, stretches); of two, one that holds no more
    and takes no longer is enough.
    """
    layers, count = tape.layers, len(tape.layers)
    start = tape.resident_bytes + (layers[first - 1].activation_bytes if first else 0)
    states: list[list[tuple[int, int, tuple[tuple[int, int], ...]]]] = [[] for _ in range(count + 1)]
    states[first] = [(start, 0, ())]
    for i in range(first, count):
        for held, spent, stretches in _frontier(states[i]):
            for stop, after, longer in _choices(layers, i, held, budget):
                taken = stretches if stop < 0 else (*stretches, (i, stop))
                states[i + 1 if stop < 0 else stop].append((after, spent + longer, taken))
    yield from (stretches for _, _, stretches in sorted(states[count], key=lambda state: state[1])[:1])


def _choices(layers: Sequence[TapeLayer], i: int, held: int, budget: int) -> Iterator[tuple[int, int, int]]:
    """(stop, bytes held behind it, picoseconds): keeping layer `i` (stop -1), and each stretch from it that fits."""
    gradient = layers[i - 1].gradient_bytes if i else 0
    kept = held + layers[i].activation_bytes
    if kept + layers[i].gradient_bytes + gradient <= budget:
        yield -1, kept, 0
    grown, spent, passing, most = held, 0, 0, 0
    for stop in range(i + 1, len(layers) + 1):
        layer = layers[stop - 1]
        before = layers[stop - 2].gradient_bytes if stop > 1 else 0
        # Forward, two outputs meet; backward, the whole stretch is there with the gradients at its end.
        most = max(most, held + passing + layer.output_bytes)
        grown, spent, passing = grown + layer.activation_bytes, spent + picoseconds(layer.again_s, "a pass"), 0
        if grown > budget or most > budget:
            return
        passing = layer.output_bytes
        if _backward_peak(layers, i, stop, held) <= budget and grown + layer.gradient_bytes + before <= budget:
            yield stop, held + layer.output_bytes, spent


def _backward_peak(layers: Sequence[TapeLayer], start: int, stop: int, held: int) -> int:
    """The most bytes while the stretch is recomputed and runs backward."""
    live = held + sum(layer.activation_bytes for layer in layers[start:stop])
    most = 0
    for i in reversed(range(start, stop)):
        most = max(most, live + layers[i].gradient_bytes + (layers[i - 1].gradient_bytes if i else 0))
        live -= layers[i].activation_bytes
    return most


def _frontier(
    states: list[tuple[int, int, tuple[tuple[int, int], ...]]],
) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...]]]:
    least = None
    for state in sorted(states):
        if least is None or state[1] < least:
            least = state[1]
            yield state


def _fetch(step: VirtualTape, i: int, offloaded: Sequence[int]) -> None:
    """Start the copy of layer `i` back, if it is offloaded and not on its way yet."""
    if i in offloaded and not any(entry["op"] == "fetch" and entry["layer"] == i for entry in step._program):
        step.fetch(i)


def _merged(part: Sequence[TapeLayer]) -> TapeLayer:
    last = part[-1]
    return TapeLayer(
        part[0].name if len(part) == 1 else f"{part[0].name}..{last.name}",
        sum(layer.activation_bytes for layer in part),
        last.output_bytes,
        sum(layer.forward_s for layer in part),
        sum(layer.backward_s for layer in part),
        sum(layer.again_s for layer in part),
        last.gradient_bytes,
    )


def _require_chain(tape: Tape) -> Tape:
    if tape.is_chain:
        return tape
    raise VirtualMemoryError(
        f"{tape.name} is not a chain",
        why="checkpoints can split only a chain, in which every layer reads only the previous layer",
        next="merge the branches first with as_chain(tape)",
    )
