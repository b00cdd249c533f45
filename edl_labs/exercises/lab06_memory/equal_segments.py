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
            why = f"it returned {len(got)}"
            raise Wrong(
                "your function must return three numbers", why=why, next="return segments, held, layers run again"
            )
        (segments, held), again = got[:2], got[2]
        layers, saved = case["layers"], case["saved"]
        if not all(math.isfinite(one) for one in got) or segments != int(segments):
            why = f"got {', '.join(f'{one:.7g}' for one in got)}"
            raise Wrong("segments, tensors and layers must be whole numbers", why=why, next="use // for divisions")
        if not 1 <= segments <= layers:
            why = f"got {segments:g} segments for {layers} layers"
            raise Wrong(
                "every segment must contain at least one layer",
                why=why,
                next="try all numbers of segments from 1 to `layers`",
            )
        right = checkpointed_peak(layers, segments, saved_per_layer=saved)
        if held != right:
            raise _held_symptom(layers, saved, segments, held)
        if held > want[1]:
            raise _choice_symptom(layers, segments, held, best=want[0])
        if again != segments * (layers // segments) - layers // segments:
            raise _again_symptom(layers, segments, again)
        if segments != want[0]:
            if want[0] == 1:
                why = f"{segments:g} segments hold {held:g} tensors, but so does one segment, which runs nothing again"
                raise Wrong(
                    "your answer ignores the choice of a single segment, with nothing checkpointed",
                    why=why,
                    next="try all numbers of segments from 1 to `layers`",
                )
            fewer = counted(again - want[2], "layer")
            why = (
                f"{segments:g} segments hold {held:g} tensors, but a different number of segments holds as few and "
                f"reruns {fewer} "
                "fewer"
            )
            raise Wrong(
                "your choice takes more time than necessary for this number of tensors",
                why=why,
                next="of the numbers of segments that hold equally few tensors, which one costs the least time?",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another order, another goal or another sum that all answers follow."""
        asked = [(case["layers"], case["saved"], *one) for case, one in zip(cases, got, strict=True)]
        if all(
            0 < held <= n and checkpointed_peak(n, held, saved_per_layer=saved) == k for n, saved, k, held, _ in asked
        ):
            why = "your second number of segments would hold exactly your first number of tensors, in every answer"
            return Wrong("your numbers are in the wrong order", why=why, next="return segments, held, again")
        if all((segments, held, again) == (1, n * saved, 0) for n, saved, segments, held, again in asked):
            why = "every answer is one segment, which runs nothing again but holds everything"
            then = "minimise the tensors first; among equal numbers of tensors, choose the least time"
            return Wrong("your code minimises time first, and memory second", why=why, next=then)
        if all(0 < k <= n and held == checkpointed_peak(n, k, saved_per_layer=saved) for n, saved, k, held, _ in asked):
            wrong = [k != right[0] for (_, _, k, _, _), right in zip(asked, want, strict=True)]
            return _square_root(asked, wrong) or _divisors(asked, wrong)
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
        "your code spreads the remaining layers over several segments",
        "in every answer, the largest segment has layers / segments layers, rounded up",
        "add all remaining layers to the last segment, as torch does",
    ),
    (
        lambda layers, saved, segments: segments - 1 + _largest(layers, segments),
        "your code counts each layer of the largest segment as one tensor",
        "your code does this in every answer, however many tensors a layer saves",
        "count `saved_per_layer` tensors for each of these layers",
    ),
    (
        lambda layers, saved, segments: saved * (segments - 1 + _largest(layers, segments)),
        "your code counts a segment's input as if it were all that a layer saves",
        "every answer does so",
        "count one tensor for each input",
    ),
    (
        lambda layers, saved, segments: max(segments - 1, saved * _largest(layers, segments)),
        "your code counts only the larger of the inputs and the segment, not their sum",
        "every answer does so",
        "add the inputs and the segment: while a segment runs again, the inputs of the other segments stay in memory",
    ),
)


def _held_symptom(layers: int, saved: int, segments: int, held: int) -> Wrong:
    if held != int(held):
        why = f"with {counted(segments, 'segment')} of {layers} layers, the number of held tensors cannot be {held:.7g}"
        then = "give each segment layers // segments layers, and the last one all that remain"
        return Wrong("your segments do not contain whole layers", why=why, next=then)
    size, rest = divmod(layers, segments)
    cut = counted(segments, "segment")
    why = f"with {cut} of {layers} layers that save {counted(saved, 'tensor')} each, got {held:g} held"
    if held in (segments, segments - 1):
        then = "count the tensors that a segment saves when it runs again before its backward pass"
        return Wrong("your code does not count the segment that runs again", why=why, next=then)
    if rest and held == segments - 1 + saved * size:
        then = "which segment contains the layers that are left over?"
        return Wrong("your code leaves the remaining layers out of every segment", why=why, next=then)
    if held in (segments + saved * size, segments + saved * (size + rest)):
        then = (
            "do not count an input for the last segment: it is not checkpointed, since its backward pass follows at "
            "once"
        )
        return Wrong("your code counts the last segment as checkpointed too", why=why, next=then)
    if segments == 1 or held == saved * layers:
        then = "how many tensors are kept if everything is kept?"
        return Wrong("your code counts a single segment wrongly: it means no checkpointing at all", why=why, next=then)
    then = "add the inputs of all segments except the last to all tensors that the largest segment saves"
    return Wrong("your number of held tensors is wrong", why=why, next=then)


def _choice_symptom(layers: int, segments: int, held: int, *, best: int) -> Wrong:
    why = (
        f"with {counted(segments, 'segment')} of {layers} layers, {held:g} are held, but a different number holds fewer"
    )
    then = "try all numbers from 1 to `layers`"
    if best == layers:
        then = f"{then}: one segment per layer is allowed too"
    elif layers % best:
        then = f"{then}, also those that do not divide `layers`"
    return Wrong("your number of segments does not hold the fewest tensors", why=why, next=then)


def _square_root(asked: list[Any], wrong: list[bool]) -> Wrong | None:
    """All numbers of segments are next to the square root of the layers, and some are not the best."""
    if not any(wrong) or any(abs(segments - layers**0.5) > 1 for layers, _, segments, _, _ in asked):
        return None
    why = (
        f"all of your numbers of segments are within 1 of the square root, but {sum(wrong)} of {len(wrong)} are "
        "not the best"
    )
    then = "try all numbers: the square root is right for layers that save one tensor each and divide evenly"
    return Wrong(
        "your code always uses about the square root of the layers, which is not always best", why=why, next=then
    )


def _divisors(asked: list[Any], wrong: list[bool]) -> Wrong | None:
    """All numbers of segments divide the layers, and hold the fewest tensors of those that do."""
    if not any(wrong):
        return None
    for layers, saved, segments, held, _ in asked:
        even = [n for n in range(1, layers + 1) if layers % n == 0]
        if segments not in even or held != min(checkpointed_peak(layers, n, saved_per_layer=saved) for n in even):
            return None
    why = (
        f"each of your answers is the best number that divides `layers`, but {sum(wrong)} of {len(wrong)} are not the "
        "best of all numbers"
    )
    then = "try the other numbers too: the last segment takes the layers that are left over"
    return Wrong("your code tries only numbers of segments that divide `layers`", why=why, next=then)


def _again_symptom(layers: int, segments: int, again: int) -> Wrong:
    why = (
        f"the first two numbers are right; for {counted(segments, 'segment')} of {layers} layers, your number of "
        f"layers that run again is {again:g}"
    )
    then = "count all layers except those of the last segment"
    if again == layers:
        return Wrong("your code counts the last segment as running again", why=why, next=then)
    if again == segments - 1:
        return Wrong("your code counts the segments that run again, not the layers in them", why=why, next=then)
    return Wrong("your number of layers that run again is wrong", why=why, next=then)
