"""best_segments: where to checkpoint a chain of equal layers."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.numerics import checkpointed_peak
from edl_labs.units import counted


@exercise("best_segments")
class BestSegments(Exercise):
    """The number of equal segments that holds the fewest tensors, how many those are, and what it costs.

    `best_segments(layers, saved_per_layer)` gives (segments, tensors held, layers that run forward again).
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.best_segments(given["layers"], given["saved"])

    def student_inputs(self, case: Any) -> Any:
        """By the names that the function has for them."""
        return {"layers": case["layers"], "saved_per_layer": case["saved"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 3:
            why = f"{len(got)} came back"
            raise Wrong("three numbers are wanted", why=why, next="return segments, held, layers run again")
        (segments, held), again = got[:2], got[2]
        layers, saved = case["layers"], case["saved"]
        if not all(math.isfinite(one) for one in got) or segments != int(segments):
            why = f"{', '.join(f'{one:.7g}' for one in got)} came back"
            raise Wrong("segments, tensors and layers are whole numbers", why=why, next="// divides whole numbers")
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

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another order, another goal or another sum that all answers follow."""
        asked = [(case["layers"], case["saved"], *one) for case, one in zip(cases, got, strict=True)]
        if all(
            0 < held <= n and checkpointed_peak(n, held, saved_per_layer=saved) == k for n, saved, k, held, _ in asked
        ):
            why = "in every answer the first number is held by as many segments as the second one says"
            return Wrong("the numbers are in the wrong order", why=why, next="segments, held, layers run again")
        if all((segments, held, again) == (1, n * saved, 0) for n, saved, segments, held, again in asked):
            why = "one segment runs nothing again and holds everything, and every answer is one segment"
            then = "first the fewest tensors; of numbers that hold equally few, the least time"
            return Wrong("time was minimised first, and memory second", why=why, next=then)
        if all(0 < k <= n and held == checkpointed_peak(n, k, saved_per_layer=saved) for n, saved, k, held, _ in asked):
            return _square_root(asked, [k != right[0] for (_, _, k, _, _), right in zip(asked, want, strict=True)])
        for known, what, why, then in _OTHER_SUMS:
            if all(0 < k <= n and held == known(n, saved, k) for n, saved, k, held, _ in asked):
                return Wrong(what, why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The chain in words."""
        return f"{case['layers']} equal layers, {case['saved']} saved tensors each"


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
        "while a segment runs again, the inputs of the others stay in memory too",
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
    return Wrong("the number of held tensors is wrong", why=why, next=then)


def _choice_symptom(layers: int, segments: int, held: int) -> Wrong:
    why = f"{segments} segments of {layers} layers hold {held}, which is right, and another number holds fewer"
    then = "try them all, from 1 to `layers`: a segment for each layer is allowed too"
    return Wrong("a different number of segments holds fewer tensors", why=why, next=then)


def _square_root(asked: list[Any], wrong: list[bool]) -> Wrong | None:
    """All numbers of segments are next to the square root of the layers, and some are not the best."""
    if not any(wrong) or any(abs(segments - layers**0.5) > 1 for layers, _, segments, _, _ in asked):
        return None
    why = f"all your numbers of segments are within 1 of it, and {sum(wrong)} of {len(wrong)} are not the best"
    then = "the square root is for layers that save one tensor each, and that divide evenly"
    return Wrong("the square root of the layers is not always best", why=why, next=then)


def _again_symptom(layers: int, segments: int, again: int) -> Wrong:
    why = f"the first two numbers are right, and {again} layers run again in {segments} segments of {layers}"
    if again == layers:
        return Wrong("the last segment never runs again", why=why, next="it runs plainly")
    return Wrong("the number of layers that run again is wrong", why=why, next="all but those of the last segment")
