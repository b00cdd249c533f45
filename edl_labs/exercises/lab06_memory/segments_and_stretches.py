"""best_segments and place_checkpoints: where to checkpoint equal layers, and where unequal ones under a budget."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.stretch_symptoms import (
    TRIED,
    Placed,
    placed_mistake,
    placement_habit,
    step_mistake,
    stretches_text,
)
from edl_labs.numerics import checkpointed_peak
from edl_labs.units import byte_count, counted, seconds
from edl_labs.virtual import ReplayError
from edl_labs.virtual.memory import Tape, TapeLayer, TapeReplay, VirtualTape, replay_tape

MOST_TIME = 1.02  # of the best placement's, promised in the lab's text
MAX_OPERATIONS = 10_000  # a step of nine layers has some forty
_FIELDS = ("name", "activation_bytes", "output_bytes", "forward_s", "backward_s")


@exercise("best_segments")
class BestSegments:
    """The number of equal segments that holds the fewest tensors, how many those are, and what it costs.

    `best_segments(layers, saved_per_layer)` gives (segments, tensors held, layers that run forward again).
    """

    def probe(self, student: Any, case: Any) -> Any:
        return list(student.best_segments(case["layers"], case["saved"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 3:
            why = f"{len(got)} came back"
            raise Wrong("three numbers are wanted", why=why, next="return segments, held, layers run again")
        (segments, held), again = got[:2], got[2]
        layers, saved = case["layers"], case["saved"]
        if not 1 <= segments <= layers:
            why = f"{segments} segments of {layers} layers"
            raise Wrong("a segment holds at least one layer", why=why, next="try 1 to `layers` segments")
        right = checkpointed_peak(layers, segments, saved_per_layer=saved)
        if held != right:
            raise _held_symptom(layers, saved, segments, held)
        if held > want[1]:
            raise _choice_symptom(layers, segments, held)
        if again != segments * (layers // segments) - layers // segments:
            raise _again_symptom(layers, segments, again)
        if segments != want[0]:
            if want[0] == 1:
                why = f"{segments} segments hold {held}, and so does a single one, which runs nothing again"
                raise Wrong("one segment, with nothing checkpointed, was not tried", why=why, next="try 1 to `layers`")
            fewer = counted(again - want[2], "layer")
            why = f"{segments} segments hold {held}, and so does another number that runs {fewer} less"
            raise Wrong("as few tensors can be had for less time", why=why, next="of equal ones, which costs least?")

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another order, another goal or another sum that all answers follow."""
        asked = [(case["layers"], case["saved"], *one) for case, one in zip(cases, got, strict=True)]
        if all(
            0 < held <= n and checkpointed_peak(n, held, saved_per_layer=saved) == k for n, saved, k, held, _ in asked
        ):
            why = "in every answer the first number is held by as many segments as the second one says"
            return Wrong("the numbers come in another order", why=why, next="segments, held, layers run again")
        if all((segments, held, again) == (1, n * saved, 0) for n, saved, segments, held, again in asked):
            why = "one segment runs nothing again and holds everything, and every answer is one segment"
            then = "first the fewest tensors; of numbers that hold equally few, the least time"
            return Wrong("time was asked for first, and memory then", why=why, next=then)
        if all(0 < k <= n and held == checkpointed_peak(n, k, saved_per_layer=saved) for n, saved, k, held, _ in asked):
            return None
        for known, what, why, then in _OTHER_SUMS:
            if all(0 < k <= n and held == known(n, saved, k) for n, saved, k, held, _ in asked):
                return Wrong(what, why=why, next=then)
        return None

    def show(self, case: Any) -> str:
        """The chain in words."""
        return f"{case['layers']} equal layers, {case['saved']} saved tensors each"


def _read_once(text: str, placed: Any) -> Any:
    """The stretches as `run_step` gets them: plain ones, since what came may be readable only once."""
    plain = json.loads(text or "null")
    pairs = isinstance(plain, list) and all(isinstance(one, list) and len(one) == 2 for one in plain)
    return [tuple(one) for one in plain] if pairs else placed


@exercise("place_checkpoints")
class PlaceCheckpoints:
    """A training step on a chain of unequal layers that stays within its memory and takes the least time.

    `place(layers, budget_bytes)` gives the stretches to run again, `run_step(step, stretches)` does the step on a
    VirtualTape. The evidence is the program.
    """

    form: ClassVar[Any] = {"program": "", "stretches": "", "trial": "", "raised": ""}

    def probe(self, student: Any, case: Any) -> Any:
        step, trial = VirtualTape(tape_of_case(case)), VirtualTape(tape_of_case(case))
        layers = [{**layer} for layer in case["layers"]]
        placed = student.place(layers, case["budget_bytes"])
        stretches, raised = stretches_text(placed), ""
        with suppress(Exception):  # what it did until then says what is wrong with it
            student.run_step(trial, list(TRIED))
        try:
            student.run_step(step, _read_once(stretches, placed))
        except Exception as error:
            if placed_mistake(stretches) is None and step_mistake(trial.program) is None:
                raise
            raised = type(error).__name__
        texts = [json.dumps(one.program, separators=(",", ":")) for one in (step, trial)]
        return {"program": texts[0], "stretches": stretches, "trial": texts[1], "raised": raised}

    def public(self, case: Any, want: Any) -> Any:
        """The time that the best placement takes, and its second runs: its program would be the answer."""
        run = _replayed(case, want["program"])
        return {"makespan_s": run.makespan_s, "again": run.counts.get("recompute", 0)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        try:
            self._judge(case, got, want)
        except Wrong as wrong:
            raise step_mistake(_entries(got["trial"])) or placed_mistake(got["stretches"]) or wrong from None

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What the stretches of all cases have in common, where the step itself is done rightly."""
        if any((one["raised"] and one["stretches"] != "null") or step_mistake(_entries(one["trial"])) for one in got):
            return None
        return placement_habit([self._placed(*one) for one in zip(cases, got, want, strict=True)])

    def _placed(self, case: Any, got: Any, want: Any) -> Placed:
        best = want if "again" in want else self.public(case, want)
        try:
            run = self._fitting(case, got)
        except Wrong:
            run = None
        is_right = run is not None and run.makespan_s <= MOST_TIME * best["makespan_s"]
        return Placed(
            case=case,
            stretches=json.loads(got["stretches"] or "null") or [],
            is_right=is_right,
            is_late=run is not None and not is_right,
            peak_bytes=run.peak_bytes if run else 0,
            fewer_again=best["again"] - run.counts.get("recompute", 0) if run else 0,
        )

    def _judge(self, case: Any, got: Any, want: Any) -> None:
        run = self._fitting(case, got)
        best = want if "makespan_s" in want else self.public(case, want)
        if run.makespan_s > MOST_TIME * best["makespan_s"]:
            raise _time_symptom(case, run, best)

    def _fitting(self, case: Any, got: Any) -> TapeReplay:
        """The step, whole and within the budget; Wrong where it is not."""
        if got["raised"]:
            raise Wrong(f"your code raised {got['raised']}", why="in run_step", next="run it on the inputs shown")
        run = _replayed(case, got["program"])
        if run.missing:
            why = f"{', '.join(run.missing[:3])} never ran"
            raise Wrong("the step is not whole", why=why, next="every layer runs forward once and backward once")
        _judge_repeats(case, run)
        if run.peak_bytes > case["budget_bytes"]:
            raise _peak_symptom(case, run)
        return run

    def show(self, case: Any) -> str:
        """The layers and the budget."""
        lines = [
            f"  {layer['name']}: {byte_count(layer['activation_bytes'])} kept, {byte_count(layer['output_bytes'])} "
            f"handed on, {seconds(layer['forward_s'])} forward{', only once' if layer['once'] else ''}"
            for layer in case["layers"]
        ]
        return "\n".join([f"a budget of {byte_count(case['budget_bytes'])}", *lines])


def tape_of_case(case: Any) -> Tape:
    """The layers of a case as a chain."""
    return Tape(tuple(TapeLayer(**{name: layer[name] for name in _FIELDS}) for layer in case["layers"]))


def _replayed(case: Any, text: Any) -> TapeReplay:
    try:
        return replay_tape(json.loads(text), tape_of_case(case), max_operations=MAX_OPERATIONS)
    except (TypeError, ValueError, RecursionError):
        why, then = "it cannot be read", "use the step through its own calls, and leave its record alone"
        raise Wrong("the recorded program is none of a VirtualTape", why=why, next=then) from None
    except ReplayError as error:
        raise Wrong(
            "the recorded program is not what this tape allows", why=f"{error.what}: {error.why}", next=error.next
        ) from None


def _largest(layers: int, segments: int) -> int:
    return layers // segments + layers % segments


_OTHER_SUMS = (
    (
        lambda layers, saved, segments: segments - 1 + saved * -(-layers // segments),
        "the layers that are left over were shared out",
        "every answer has a largest segment of layers / segments, rounded up",
        "torch gives all of the rest to the last segment",
    ),
    (
        lambda layers, saved, segments: segments - 1 + _largest(layers, segments),
        "each layer of the largest segment counts as one tensor",
        "every answer does so, whatever a layer saves",
        "a layer saves `saved_per_layer` tensors",
    ),
    (
        lambda layers, saved, segments: saved * (segments - 1 + _largest(layers, segments)),
        "the input of a segment counts as much as a layer saves",
        "every answer does so",
        "an input is one tensor",
    ),
    (
        lambda layers, saved, segments: max(segments - 1, saved * _largest(layers, segments)),
        "the larger one of inputs and segment was taken, not their sum",
        "every answer does so",
        "while a segment runs again, the inputs of the others wait beside it",
    ),
)


def _held_symptom(layers: int, saved: int, segments: int, held: int) -> Wrong:
    if held != int(held):
        why = f"{segments} segments of {layers} layers do not hold {held:.7g}"
        return Wrong("segments hold whole layers", why=why, next="layers // segments, and the rest in the last one")
    size, rest = divmod(layers, segments)
    why = f"{segments} segments of {layers} layers with {saved} tensors each do not hold {held}"
    if held in (segments, segments - 1):
        then = "before its backward pass a segment runs again, and all that it saves is there"
        return Wrong("the segment that runs again is not counted", why=why, next=then)
    if rest and held == segments - 1 + saved * size:
        then = "which segment has the layers that are left over?"
        return Wrong("the layers that are left over are in no segment", why=why, next=then)
    if held in (segments + saved * size, segments + saved * (size + rest)):
        then = "the last segment runs plainly: its backward pass comes at once, so nothing is kept of its input"
        return Wrong("the last segment is checkpointed too", why=why, next=then)
    if segments == 1 or held == saved * layers:
        return Wrong("one segment is no checkpointing at all", why=why, next="everything is kept: how much is it?")
    then = "the inputs of all segments but the last, and all that the largest segment saves"
    return Wrong("another number of tensors is held", why=why, next=then)


def _choice_symptom(layers: int, segments: int, held: int) -> Wrong:
    why = f"{segments} segments of {layers} layers hold {held}, which is right, and another number holds fewer"
    if abs(segments - layers**0.5) <= 1:
        then = "the square root is for layers that save one tensor each, and that divide evenly"
        return Wrong("the square root of the layers is not always best", why=why, next=then)
    return Wrong("another number of segments holds fewer tensors", why=why, next="try them all: there are few")


def _again_symptom(layers: int, segments: int, again: int) -> Wrong:
    why = f"the first two numbers are right, and {again} layers run again in {segments} segments of {layers}"
    if again == layers:
        return Wrong("the last segment never runs again", why=why, next="it runs plainly")
    return Wrong("the number of layers that run again is wrong", why=why, next="all but those of the last segment")


def _judge_repeats(case: Any, run: TapeReplay) -> None:
    again = [entry["layer"] for entry in run.program if entry["op"] == "recompute"]
    named = [layer["name"] for layer in case["layers"]]
    once = [named[i] for i in again if case["layers"][i]["once"]]
    if once:
        why = f"{once[0]} runs again; it draws random numbers or updates statistics, and would do so twice"
        raise Wrong("a layer that may run only once runs again", why=why, next="such a layer ends a stretch before it")
    if any(entry["op"] in ("offload", "fetch") for entry in run.program):
        why = "the host's memory is not part of this exercise"
        raise Wrong("something is copied to the host", why=why, next="keep, drop and recompute")


def _peak_symptom(case: Any, run: TapeReplay) -> Wrong:
    why = (
        f"{byte_count(run.peak_bytes)} at {run.peak.operation}, most of it {run.peak_owner}; the budget is "
        f"{byte_count(case['budget_bytes'])}"
    )
    if not run.counts.get("recompute"):
        return Wrong("everything is kept, and it does not fit", why=why, next="which stretches could run again?")
    ops = [entry["op"] for entry in run.program]
    if "drop" not in ops and ("recompute", "recompute") in pairwise(ops):
        then = "only the output of a stretch's last layer is needed before the stretch runs again"
        return Wrong("outputs inside a stretch are never let go", why=why, next=then)
    if run.peak.operation.startswith("forward"):
        return Wrong("the forward pass leaves too much", why=why, next="what is still held of the layers before it?")
    then = "when a stretch runs again, all that its layers save is there at once, beside what is kept before it"
    return Wrong("a stretch that runs again does not fit", why=why, next=then)


def _time_symptom(case: Any, run: TapeReplay, best: Any) -> Wrong:
    again = [entry["layer"] for entry in run.program if entry["op"] == "recompute"]
    why = f"{seconds(run.recomputed_s)} are run again; the best step takes {seconds(best['makespan_s'])}, this one "
    why += seconds(run.makespan_s)
    everything = sum(layer["activation_bytes"] for layer in case["layers"])
    if everything <= case["budget_bytes"]:
        return Wrong("layers run again where everything fits", why=why, next="what does keeping all take?")
    if len(again) > len(set(again)):
        return Wrong("a layer runs again more than once", why=why, next="run a stretch once, and keep what it saves")
    if len(again) == sum(not layer["once"] for layer in case["layers"]):
        return Wrong("every layer that can run again does", why=why, next="keep what the budget has room for")
    if len(again) < best["again"]:
        why += f"; {len(again)} layers run again here, and {best['again']} in the best step"
        return Wrong("few layers run again, but long ones", why=why, next="add up their seconds, do not count them")
    return Wrong("other stretches would take less time", why=why, next="try every set of stretches that fits")


def _entries(text: str) -> list[Any]:
    """A recorded program; empty where it cannot be read."""
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        return found if isinstance(found, list) else []
    return []
