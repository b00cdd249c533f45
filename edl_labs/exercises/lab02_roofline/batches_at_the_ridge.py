"""minibatch_crossover: the batch at which a layer meets the ridge, where there is one."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.evidence_form import fitted
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import say

_SOLVE = "write the intensity as a function of the batch, set it equal to the ridge, and solve"


@exercise("minibatch_crossover")
class MinibatchCrossover(Exercise):
    """The batch at which a layer becomes compute-bound, and the width below which none does.

    `student.batch_at_ridge(inputs, outputs, ridge=, itemsize=)` and `student.width_limit(ridge=, itemsize=)`.
    """

    answers = "all"

    skip_type_check = True  # a None in place of math.inf is told so

    def probe(self, student: Any, given: Any) -> Any:
        machine = {"ridge": given["ridge"], "itemsize": given["itemsize"]}
        return {
            "batch": student.batch_at_ridge(given["inputs"], given["outputs"], **machine),
            "width": student.width_limit(**machine),
        }

    def explain_exception(self, case: Any, kind: str) -> Wrong | None:
        """A division at the width limit itself."""
        sides = case["inputs"] * case["outputs"] / (case["inputs"] + case["outputs"])
        if kind != "ZeroDivisionError" or not math.isclose(2 * sides, case["ridge"] * case["itemsize"], rel_tol=1e-9):
            return None
        why, then = "towards the width limit, the batch grows without bound", "return math.inf at the limit, and below"
        return Wrong("your code divides by zero at the width limit, where no batch is large enough", why=why, next=then)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["batch"] is None and math.isinf(want["batch"]):
            why = "expected a number: infinity is larger than every batch"
            raise Wrong(
                "your function returned None where no batch is large enough", why=why, next="return math.inf there"
            )
        fitted(got, want)
        if not _same(got["batch"], want["batch"]):
            raise _batch_mistake(case, got["batch"], want["batch"])
        if not close(got["width"], want["width"]):
            factor = got["width"] / want["width"]
            known = {
                4 / case["itemsize"]: "your width assumes 4 bytes per element",
                0.5: "your answer is half of the width limit",
            }
            what = next((text for ratio, text in known.items() if close(factor, ratio)), "the width limit is wrong")
            if close(got["width"], want["width"] - 1):
                what = (
                    "your answer is one less than the width limit: at "
                    "the limit itself, no batch reaches the ridge either"
                )
            why = f"an element has {case['itemsize']} bytes, and the ridge is {case['ridge']}"
            raise Wrong(
                what, why=why, next="which intensity does a square layer approach as its batch grows without bound?"
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """A search among whole batches, a square layer, or 4 bytes an element, where it gives all answers."""
        answers = zip(cases, got, want, strict=True)
        batches = [(case, answer["batch"], right["batch"]) for case, answer, right in answers]
        if all(_same(batch, right) for _, batch, right in batches):
            return None  # the width is wrong, whose sentence is its own
        known = _search_that_ends(batches) or _square_layer(batches)
        if known is not None:
            return known
        if {case["itemsize"] for case in cases} == {4} or not all(_for_four_bytes(*one) for one in batches):
            return None
        return Wrong(
            "your batch assumes 4 bytes per element",
            why="your answer is right if an element has 4 bytes; otherwise it is the answer for 4 bytes",
            next="use itemsize",
        )


def _search_that_ends(batches: list[tuple[Any, Any, float]]) -> Wrong | None:
    """Whole batches, rounded up, as far as some number; for all that need more, what a layer without one gets."""
    given_up = [got for _, got, want in batches if got is None or math.isinf(got)]
    none = given_up[0] if given_up else math.inf
    found = [(got, want) for _, got, want in batches if got not in (None, math.inf)]
    beyond = [want for _, got, want in batches if got in (None, math.inf) and not math.isinf(want)]
    if any(got != none for got in given_up) or not beyond or sum(got != want for got, want in found) < 2:
        return None
    if not all(got == int(got) and 0 <= got - want <= 1 for got, want in found):
        return None
    last = max(got for got, _ in found)
    if min(beyond) <= last:
        return None
    why = (
        f"your batches are rounded up to whole numbers, and the largest is {say(last)}; "
        f"you returned {none} for every layer that needs a larger one"
    )
    return Wrong("your code tries only whole batches, and gives up too early", why=why, next=_SOLVE)


def _square_layer(batches: list[tuple[Any, float, float]]) -> Wrong | None:
    """Right for square layers, and elsewhere the batch of the square layer with one of the two sides."""
    wrong = [(case, got) for case, got, want in batches if not _same(got, want)]
    for kept, forgotten in (("inputs", "outputs"), ("outputs", "inputs")):
        square = [
            (case, got, close(_reached({**case, forgotten: case[kept]}, got), case["ridge"])) for case, got in wrong
        ]
        if (
            len(wrong) > 1
            and all(fits or math.isinf(got) or got < 0 for _, got, fits in square)
            and any(fits and case["inputs"] != case["outputs"] for case, _, fits in square)
        ):
            why = (
                "your batch is right if inputs and outputs are equal; "
                f"otherwise it is that of a layer with `{kept}` on both sides"
            )
            return Wrong("your code assumes a square layer", why=why, next=f"use `{forgotten}` in the formula, too")
    return None


def _for_four_bytes(case: Any, got: float, want: float) -> bool:
    """Whether `got` is the batch of a layer whose elements have 4 bytes; it has to be right where they have."""
    if case["itemsize"] == 4 or got == math.inf:
        return _same(got, want) or (got == math.inf and case["itemsize"] < 4)
    return math.isfinite(got) and got > 0 and close(_reached(case, got) / case["ridge"], 4 / case["itemsize"])


def _reached(case: Any, batch: float) -> float:
    """FLOP/B of a layer at a batch."""
    inputs, outputs = case["inputs"], case["outputs"]
    bytes_moved = case["itemsize"] * (inputs * outputs + (inputs + outputs) * batch)
    return float(2 * inputs * outputs * batch / bytes_moved) if math.isfinite(batch) and bytes_moved else math.inf


def _same(got: Any, want: float) -> bool:
    return got == want if math.isinf(want) else close(got, want)


def _batch_mistake(case: Any, got: float, want: float) -> Wrong:
    inputs, outputs, bytes_a_flop = case["inputs"], case["outputs"], case["ridge"] * case["itemsize"]
    mean = 2 * inputs * outputs / (inputs + outputs)
    reached = _reached(case, got)
    ratio, itemsize = reached / case["ridge"], case["itemsize"]
    then = _SOLVE
    at = f"at your batch of {say(got)}, the intensity is {say(reached)} FLOP/B; the ridge is {case['ridge']}"
    if math.isinf(want) and got < 0:
        what, why = (
            "your function returned a negative batch where no batch is large enough",
            "the intensity stays below the ridge at any batch",
        )
        then = "return math.inf instead of a negative batch"
    elif math.isinf(want):
        what, why = (
            "your function returned a batch where no batch is large enough",
            "the intensity stays below the ridge at any batch",
        )
        then = "return math.inf there: which intensity does this layer approach as its batch grows without bound?"
    elif close(got, bytes_a_flop / 2):
        what, why = (
            "your code counts only the weights",
            "inputs and results are moved, too, and they grow with the batch",
        )
    elif close(got, bytes_a_flop / 2 * mean / (mean - bytes_a_flop / 2), rtol=1e-3):
        what, why = (
            "your code leaves out inputs or results",
            "inputs and results are moved, and both grow with the batch",
        )
    elif close(got, 40 * inputs / (inputs - 80) if inputs != 80 else 0.0) or close(got, 64):
        what, why = "your answer is the one for the deck's machine", "ridge and itemsize are arguments"
    elif got == math.inf:
        what, why = (
            "your function returned math.inf, but there is a batch that reaches the ridge",
            "this layer is wide enough",
        )
    elif got in (math.floor(want), math.ceil(want)):
        what, why = (
            "your function rounds the batch",
            "the ridge is reached between two whole batches; expected that point",
        )
        then = "return the batch without rounding it"
    elif close(ratio, 2.0, rtol=1e-3):
        what, why = "your code counts a multiply-add as one operation, or every byte twice", at
    elif close(ratio, 1 / itemsize, rtol=1e-3):
        what, why = "you counted elements, not bytes", at
    elif itemsize != 4 and close(ratio, 4 / itemsize, rtol=1e-3):
        what, why = "your batch assumes 4 bytes per element", at
    else:
        what, why = "the batch is wrong", at
    return Wrong(what, why=why, next=then)
