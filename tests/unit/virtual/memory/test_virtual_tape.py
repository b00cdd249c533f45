"""VirtualTape against a replay written differently, its refusals, and placements against every one there is."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from fractions import Fraction

import pytest

from edl_labs.numerics import checkpointed_peak
from edl_labs.virtual.errors import ReplayError, VirtualMemoryError
from edl_labs.virtual.memory import (
    Tape,
    TapeLayer,
    TapeReplay,
    VirtualTape,
    as_chain,
    best_placement,
    replay_tape,
    segmented,
    stepped,
)
from edl_labs.virtual.memory.tape.program import OPERATIONS


def drawn_tape(rng: random.Random, count: int, *, branches: bool = False) -> Tape:
    layers = []
    for i in range(count):
        output = rng.randrange(1, 40)
        read = tuple(sorted(rng.sample(range(i), rng.randint(1, min(i, 3))))) if branches and i else None
        seconds = [rng.randrange(1, 9) / 8 for _ in range(3)]
        layers.append(TapeLayer(f"l{i}", output + rng.randrange(80), output, *seconds, rng.randrange(30), read))
    return Tape(tuple(layers), copy_byte_per_s=float(rng.choice((8, 16, 64))), resident_bytes=rng.randrange(50))


def drawn_program(rng: random.Random, tape: Tape) -> VirtualTape:
    """Operations at random; those that cannot be are refused, and leave no trace."""
    step, last = VirtualTape(tape), len(tape.layers) - 1
    calls = [
        lambda i: step.forward(i, keep=rng.random() < 0.7),
        step.backward,
        lambda i: step.drop(i, keep_output=rng.random() < 0.5),
        lambda i: step.recompute(i, keep=rng.random() < 0.8),
        step.offload,
        step.fetch,
    ]
    for _ in range(60 * len(tape.layers)):
        kind = rng.choices(calls, weights=(6, 6, 1, 4, 1, 3))[0]
        try:
            kind(rng.randint(0, last))
        except VirtualMemoryError:
            continue
    return step


def brute_force(tape: Tape, program: list[dict]) -> tuple[Fraction, int, int]:
    """(makespan, peak, operation of the peak): intervals of single buffers on an exact time line, added up anywhere."""
    at = Fraction(0)
    free = {"offload": Fraction(0), "fetch": Fraction(0)}
    ready: dict[int, Fraction] = {}
    ends = [at]
    # Buffers: [bytes, (from, operation), (until, operation) or None].
    buffers: list[list] = []
    live: dict[tuple[str, int], list] = {}
    stored: dict[int, list[str]] = {}

    def make(key, size, when):
        live[key] = [size, when, None]
        buffers.append(live[key])

    def end(key, when):
        if key in live:
            live.pop(key)[2] = when

    parts = [(layer.output_bytes, layer.activation_bytes - layer.output_bytes) for layer in tape.layers]
    for number, entry in enumerate(program):
        i, op = entry["layer"], entry["op"]
        layer = tape.layers[i]
        if op in ("forward", "recompute", "backward"):
            start = max([at, *(ready.get(j, at) for j in (i, *tape.inputs[i]))])
            again = layer.forward_s if layer.recompute_s is None else layer.recompute_s
            spent = {"forward": layer.forward_s, "recompute": again, "backward": layer.backward_s}[op]
            at = start + Fraction(spent)
            if op == "backward":
                for j in (i, *tape.inputs[i]):
                    if ("gradient", j) not in live:
                        make(("gradient", j), tape.layers[j].gradient_bytes, (start, number))
                for kind in ("gradient", "output", "rest"):
                    end((kind, i), (at, number))
            else:
                if ("output", i) not in live:
                    make(("output", i), parts[i][0], (start, number))
                if entry["keep"]:
                    make(("rest", i), parts[i][1], (start, number))
                ready[i] = at
        elif op == "drop":
            when = (max(at, ready.get(i, at)), number)
            for kind in ("rest",) if entry["keep_output"] else ("rest", "output"):
                end((kind, i), when)
        else:
            start = max(at, ready.get(i, at), free[op])
            kinds = [k for k in ("output", "rest") if (k, i) in live] if op == "offload" else stored.pop(i)
            size = sum(parts[i][k == "rest"] for k in kinds)
            free[op] = ready[i] = start + Fraction(size) / Fraction(tape.copy_byte_per_s)
            if op == "offload":
                stored[i] = kinds
                for kind in kinds:
                    end((kind, i), (free[op], number))
            else:
                for kind in kinds:
                    make((kind, i), parts[i][kind == "rest"], (start, number))
            ends.append(free[op])
        ends.append(at)
    instants = sorted({b[1] for b in buffers} | {b[2] for b in buffers if b[2]})
    peak, where = tape.resident_bytes, -1
    for instant in instants:
        size = tape.resident_bytes + sum(b[0] for b in buffers if b[1] <= instant and (b[2] is None or instant < b[2]))
        if size > peak:
            peak, where = size, instant[1]
    return max(ends), peak, where


@pytest.mark.parametrize("seed", range(40))
def test_a_replay_agrees_with_one_written_differently(seed: int) -> None:
    rng = random.Random(seed)
    tape = drawn_tape(rng, rng.randint(2, 6), branches=seed % 2 == 1)
    step = drawn_program(rng, tape)

    replayed = replay_tape(json.loads(json.dumps(step.program)), Tape.from_json(json.dumps(tape.to_json())))

    makespan, peak, where = brute_force(tape, step.program)
    assert (float(makespan), peak) == (replayed.makespan_s, replayed.peak_bytes)
    assert where == replayed.peak.index
    assert sum(size for _, size in replayed.owners) == replayed.peak_bytes
    assert TapeReplay.from_json(replayed.to_json()).peak == replayed.peak


def test_the_drawn_programs_hold_every_operation() -> None:
    done = Counter()
    for seed in range(10):
        rng = random.Random(seed)
        done.update(drawn_program(rng, drawn_tape(rng, rng.randint(2, 6), branches=seed % 2 == 1)).replay().counts)

    assert set(OPERATIONS) == {name for name, times in done.items() if times >= 5}


def test_the_u_curve_of_64_layers_is_the_decks() -> None:
    tape = Tape.chain(64, activation_bytes=2, output_bytes=1, forward_s=1.0, backward_s=2.0)
    counts = (1, 4, 8, 16, 32)
    replays = [segmented(tape, count).replay() for count in counts]

    assert [128, 35, 23, 23, 35] == [one.peak_bytes for one in replays]
    assert [checkpointed_peak(64, count, saved_per_layer=2) for count in counts] == [one.peak_bytes for one in replays]
    assert [0.0, 48.0, 56.0, 60.0, 62.0] == [one.recomputed_s for one in replays]
    assert {()} == {one.missing for one in replays}


def every_placement(count: int):
    """All ways to keep layers and to recompute stretches of a chain once each."""
    for cuts in itertools.product((False, True), repeat=count - 1):
        starts = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), count]
        stretches = list(itertools.pairwise(starts))
        for chosen in itertools.product((False, True), repeat=len(stretches)):
            yield tuple(one for one, again in zip(stretches, chosen, strict=True) if again)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_placement_is_the_best_of_all(seed: int) -> None:
    rng = random.Random(seed)
    tape = drawn_tape(rng, 5)
    replays = [stepped(tape, stretches).replay() for stretches in set(every_placement(5))]
    peaks = sorted({one.peak_bytes for one in replays})

    for budget in (peaks[0], peaks[len(peaks) // 3], peaks[-1]):
        fitting = min(one.makespan_s for one in replays if one.peak_bytes <= budget)
        found = best_placement(tape, budget)
        assert fitting == found.replay.makespan_s
        assert found.replay.peak_bytes <= budget
        assert () == found.replay.missing
        assert best_placement(tape, budget, offload=True).replay.makespan_s <= fitting
    with pytest.raises(VirtualMemoryError, match=r"no placement of checkpoints keeps the step of a tape within"):
        best_placement(tape, peaks[0] - 1)


def test_offloading_beats_recomputing_where_copies_are_fast_enough() -> None:
    fast = Tape.chain(8, activation_bytes=8, output_bytes=1, forward_s=1.0, backward_s=2.0, copy_byte_per_s=16.0)
    slow = Tape.chain(8, activation_bytes=8, output_bytes=1, forward_s=1.0, backward_s=2.0, copy_byte_per_s=0.25)

    assert best_placement(fast, 40, offload=True).offloaded
    assert () == best_placement(slow, 40, offload=True).offloaded
    assert best_placement(fast, 40, offload=True).replay.makespan_s < best_placement(fast, 40).replay.makespan_s


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda s: s.forward(1, keep=True), "cannot run forward"),
        (lambda s: s.backward(2), "runs backward too soon"),
        (lambda s: (run(s), s.backward(1)), "has no gradient yet"),
        (lambda s: (run(s), s.forward(0, keep=True)), "runs forward twice"),
        (lambda s: (run(s), s.recompute(2)), "is recomputed needlessly"),
        (lambda s: s.recompute(0), "is recomputed before its first forward pass"),
        (lambda s: (run(s), s.drop(1), s.backward(2)), "cannot run backward"),
        (lambda s: (run(s), s.drop(2, keep_output=True), s.backward(2)), "its activations are not in memory"),
        (lambda s: (run(s), s.offload(2), s.backward(2)), "is on the host"),
        (lambda s: (run(s), s.fetch(1)), "the layer is not on the host"),
        (lambda s: (run(s), s.offload(1), s.recompute(1)), "is recomputed while it is on the host"),
        (lambda s: (run(s), s.offload(1), s.offload(1)), "already on the host"),
        (lambda s: (run(s), s.drop(1), s.drop(1)), "nothing of this layer that could be dropped is in memory"),
        (lambda s: (run(s), s.backward(2), s.backward(2)), "runs backward twice"),
        (lambda s: (run(s), s.backward(2), s.recompute(2)), "is recomputed too late"),
        (lambda s: s.forward(7, keep=True), "there is no layer 7"),
        (lambda s: s.forward(0, keep=1), "not True or False"),
    ],
)
def test_what_cannot_be_is_refused_with_what_why_and_next(do, message: str) -> None:
    step = VirtualTape(Tape.chain(3, activation_bytes=2, output_bytes=1))

    with pytest.raises(VirtualMemoryError) as caught:
        do(step)

    assert message in str(caught.value)
    assert caught.value.why
    assert caught.value.next
    # What was refused is not in the program: the rest still replays.
    assert len(step.program) == sum(step.replay().counts.values())


def run(step: VirtualTape) -> None:
    for i in range(3):
        step.forward(i, keep=True)


@pytest.mark.parametrize(
    "program",
    [
        None, {}, "x", [1], [{}], [{"op": []}], [{"op": "forward"}], [{"op": "forward", "layer": 0}],
        [{"op": "forward", "layer": True, "keep": True}], [{"op": "forward", "layer": 10**400, "keep": True}],
        [{"op": "forward", "layer": 0, "keep": True, "x": 1}], [{"op": "backward", "layer": 0}],
        [{"op": "forward", "layer": 0, "keep": "no"}], [{"op": "_size", "layer": 0}],
    ],
)  # fmt: skip
def test_what_is_not_a_program_is_a_replay_error(program) -> None:
    with pytest.raises(ReplayError):
        replay_tape(program, Tape.chain(2, activation_bytes=2, output_bytes=1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: TapeLayer("a", 1, 2), lambda: TapeLayer("a", -1, 0), lambda: TapeLayer("", 1, 1), lambda: Tape(()),
        lambda: TapeLayer("a", 2, 1, forward_s=float("nan")), lambda: Tape((TapeLayer("a", 1, 1, inputs=(0,)),)),
        lambda: Tape.chain(2, activation_bytes=1, output_bytes=1, copy_byte_per_s=0),
        lambda: segmented(Tape.chain(2, activation_bytes=1, output_bytes=1), 3),
        lambda: stepped(Tape((TapeLayer("a", 1, 1), TapeLayer("b", 1, 1, inputs=()))), ()),
    ],
)  # fmt: skip
def test_an_impossible_tape_is_refused(make) -> None:
    with pytest.raises(VirtualMemoryError):
        make()


def test_a_chain_of_blocks_holds_and_takes_what_their_layers_do() -> None:
    rng = random.Random(3)
    body = [TapeLayer(f"l{i}", 5, 2, 1.0, 2.0, inputs=(i - 1,) if i else ()) for i in range(6)]
    skip = TapeLayer("add", 2, 2, 0.5, 0.5, inputs=(2, 5))
    merged = as_chain(Tape((*body, skip, TapeLayer("head", rng.randrange(1, 9), 1, inputs=(6,)))))

    assert ["l0", "l1", "l2", "l3..add", "head"] == [layer.name for layer in merged.layers]
    assert merged.is_chain
    assert (17, 2, 3.5) == (
        merged.layers[3].activation_bytes,
        merged.layers[3].output_bytes,
        merged.layers[3].forward_s,
    )


def test_a_diamond_by_hand() -> None:
    """A graph: what two layers read stays until both ran backward, and has a gradient when both are done."""
    layers = (
        TapeLayer("stem", 5, 2, 1.0, 2.0, gradient_bytes=2),
        TapeLayer("left", 7, 3, 1.0, 2.0, gradient_bytes=3, inputs=(0,)),
        TapeLayer("right", 11, 4, 1.0, 2.0, gradient_bytes=4, inputs=(0,)),
        TapeLayer("join", 6, 1, 1.0, 2.0, gradient_bytes=1, inputs=(1, 2)),
    )
    step = VirtualTape(Tape(layers))
    for i in range(4):
        step.forward(i, keep=True)
    step.backward(3)
    with pytest.raises(VirtualMemoryError, match="has no gradient yet") as caught:
        step.backward(0)
    assert "right" in caught.value.why
    step.drop(0, keep_output=True)
    step.backward(1)
    step.drop(2)
    with pytest.raises(VirtualMemoryError, match="cannot run backward"):
        step.backward(2)
    step.recompute(2)
    step.backward(2)
    step.recompute(0)
    step.backward(0)
    found = step.replay()

    # All activations, the loss's gradient, and those of both branches, as the join runs backward.
    assert (29 + 1 + 3 + 4, "backward(3)") == (found.peak_bytes, found.peak.operation)
    assert (4 + 2 + 8, 2.0, ()) == (found.makespan_s, found.recomputed_s, found.missing)
    assert 0 == found.moments[-1].live_bytes
