"""bytes_per_parameter: recipes of training, drawn from what two lecturers and PyTorch do."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong


@exercise("bytes_per_parameter")
class BytesPerParameter(Exercise):
    """Bytes that a parameter costs on each GPU, resident and at the peak, for drawn recipes.

    `student.bytes_per_parameter(recipe)` gives `(resident, peak)` bytes per parameter on each GPU.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.bytes_per_parameter(dict(given))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 2:
            raise Wrong("expected two answers", why=f"your function returned {len(got)}", next="return resident, peak")
        if not close(got[0], want[0], rtol=1e-9):
            why = f"your function returned {got[0]:g} bytes for {_words(case)}"
            what, then = _mistake(case, got[0], want[0])
            raise Wrong(what, why=why, next=then)
        if not close(got[1], want[1], rtol=1e-9):
            why = (
                f"your resident bytes, {got[0]:g}, are right, but you returned a peak of {got[1]:g} for {_words(case)}"
            )
            what, then = _peak_mistake(case, got, want)
            raise Wrong(what, why=why, next=then)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """One part of all recipes that have it was left out, or counted too often, and nothing else is wrong."""
        rows = [(case, right[0] - mine[0]) for case, mine, right in zip(cases, got, want, strict=True)]
        off = [row for row in rows if not close(row[1], 0, atol=1e-9)]
        for left_out, what, then in _LEFT_OUT:
            if off and all(close(missing, left_out(case), rtol=1e-9, atol=1e-9) for case, missing in rows):
                shown, missing = off[0]
                unit, way = "byte" if abs(missing) == 1 else "bytes", "few" if missing > 0 else "many"
                why = (
                    f"you returned {abs(missing):g} {unit} too {way} for "
                    f"{_words(shown)}; the other recipes are off in the same way"
                )
                return Wrong(what, why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The recipe in words."""
        return _words(case)


def _split(case: Any, stage: int) -> float:
    """Among how many GPUs ZeRO splits what it splits from `stage` on."""
    return float(case["gpus"]) if case["zero_stage"] >= stage else 1.0


def _short_weights(case: Any) -> float:
    return 2 / _split(case, 3) if case["precision"].startswith("deck") else 0.0


def _gradients_on_the_host(case: Any) -> float:
    each = 2 if case["precision"] in ("deck 000", "bf16") else 4
    return each * case["trained"] / _split(case, 2) if case["offload"] else 0.0


def _one_short_state(case: Any) -> float:
    if "8 bit" not in case["optimizer"] or case["offload"]:
        return 0.0
    return float(case["trained"]) / _split(case, 1)


def _master_copy(case: Any) -> float:
    return 4.0 * case["precision"].startswith("deck") * (not case["offload"])


def _whole_master_copy(case: Any) -> float:
    return -_master_copy(case) * case["trained"] * (1 - 1 / _split(case, 1))


def _frozen_master_copy(case: Any) -> float:
    return -_master_copy(case) * (1 - case["trained"]) / _split(case, 1)


def _master_copy_of_sgd(case: Any) -> float:
    return _master_copy(case) * case["trained"] / _split(case, 1) if case["optimizer"] == "sgd" else 0.0


# Each is (bytes that a mistake leaves out, below 0 where it counts too many; what is wrong; what to do).
_LEFT_OUT = [
    (
        _short_weights,
        "your code leaves out the 2 bytes of the weights if there is a master copy",
        "count both: the master copy exists in addition to the short weights",
    ),
    (
        _gradients_on_the_host,
        "your code offloads gradients, too",
        "offload only optimizer states and master weights; keep weights and gradients on the GPU",
    ),
    (
        _one_short_state,
        "your code counts one byte for both states of 8-bit Adam together",
        "count as many states as for Adam, of one byte each",
    ),
    (
        _whole_master_copy,
        "your code does not split the master copy",
        "split the master copy together with the optimizer's states, from ZeRO stage 1 on",
    ),
    (
        _frozen_master_copy,
        "your code counts a master copy of weights that are not trained",
        "count only the trained share of the master copy: the other weights need no gradients, states or master copy",
    ),
    (
        _master_copy_of_sgd,
        "your code leaves out the master copy if the optimizer keeps no states",
        "count the master copy for sgd, too: it belongs to the precision, not to the optimizer",
    ),
]


def _peak_mistake(case: Any, got: Any, want: Any) -> tuple[str, str]:
    if got[1] < got[0]:
        return (
            "your peak is less than what is always in memory",
            "count everything in memory at the fullest moment: what stays, and what is temporary",
        )
    passing = want[1] - want[0]
    if passing and case["trained"] < 1 and close(got[1] - got[0], passing * case["trained"], rtol=1e-9):
        return (
            "your peak includes a copy of only the trained weights",
            "count a copy of every weight that a pass uses, trained or not",
        )
    if case["zero_stage"] and case["gpus"] > 1:
        return "your peak is wrong", "do not split temporary buffers: each GPU has them in full while they exist"
    return (
        "your peak is wrong",
        "count autocast's copy only at the peak: it exists only while the forward and backward pass need it",
    )


def _words(case: Any) -> str:
    words = f"{case['precision']}, {case['optimizer']}"
    if case["zero_stage"]:
        words += f", ZeRO stage {case['zero_stage']}"
    words += f", {case['gpus']} GPU{'s' if case['gpus'] > 1 else ''}"
    words += ", states offloaded" if case["offload"] else ""
    return words + (f", {case['trained']:.4g} of the weights trained" if case["trained"] < 1 else "")


def _mistake(case: Any, mine: float, right: float) -> tuple[str, str]:
    """What is wrong, and what to do."""
    if not float(right).is_integer() and mine in (math.floor(right), math.ceil(right)):
        return "your code rounds the bytes, but fractions of a byte count", _next(case)
    if case["gpus"] > 1 and close(mine, right * case["gpus"]):
        return (
            f"your answer is for all {case['gpus']} GPUs together, but the question is about one of them",
            "count the bytes on one GPU: its share of the parts that ZeRO splits, and every other part in full",
        )
    if case["trained"] < 1 and mine > right:
        return (
            "your count is too large: weights that are not trained need no gradients, states or master copy",
            "which of the parts did you count only for the trained share, and which for all weights?",
        )
    return _other_mistake(case, mine, right), _next(case)


def _other_mistake(case: Any, mine: float, right: float) -> str:
    if not mine > 0:
        return "your answer is not above 0, but every parameter costs something"
    if case["trained"] < 1 and mine < right:
        return "your count is too small: frozen weights take memory, too"
    if case["offload"] and mine > right:
        return "your code still counts offloaded bytes on the GPU"
    if case["offload"] and mine < right:
        return "your code leaves out something that stays on the GPU"
    if case["zero_stage"] and mine > right:
        return f"ZeRO stage {case['zero_stage']} splits more than your code does"
    if case["zero_stage"] and mine < right:
        return f"ZeRO stage {case['zero_stage']} does not split all that your code splits"
    if case["gpus"] > 1 and mine < right:
        return "your count is too small: without ZeRO, every GPU holds everything"
    if case["precision"] == "autocast" and close(mine, right + 2):
        return "your code counts a temporary copy as resident"
    if case["precision"] == "bf16" and mine > right:
        return "your code counts part of a pure bf16 training in fp32"
    if "8 bit" in case["optimizer"] and mine > right:
        return "your count is too large: the states of an 8-bit optimizer have one byte each"
    if case["optimizer"] in ("sgd", "momentum") and mine > right:
        return f"{case['optimizer']} keeps fewer states than your code counts"
    return "your answer is not the sum of weights, copies, gradients and states"


def _next(case: Any) -> str:
    if case["offload"]:
        return "offload only optimizer states and master weights; keep weights and gradients on the GPU"
    if case["zero_stage"]:
        return (
            "split states and master weights from stage 1 on, gradients "
            "from stage 2, weights from stage 3; keep the rest whole"
        )
    return "write down the four parts for this row of the table, and add them up"
