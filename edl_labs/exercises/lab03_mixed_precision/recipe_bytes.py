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
            raise Wrong("a recipe has two answers", why=f"{len(got)} came back", next="return resident, peak")
        if not close(got[0], want[0], rtol=1e-9):
            why = f"{got[0]:g} bytes came back for {_words(case)}"
            what, then = _mistake(case, got[0], want[0])
            raise Wrong(what, why=why, next=then)
        if not close(got[1], want[1], rtol=1e-9):
            why = f"resident {got[0]:g} is right, and a peak of {got[1]:g} came back for {_words(case)}"
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
                why = f"{abs(missing):g} {unit} too {way} for {_words(shown)}, and so on"
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
        "the 2 bytes of the weights were left out where there is a master copy",
        "the master copy exists in addition to the short weights; count both",
    ),
    (
        _gradients_on_the_host,
        "gradients were offloaded too",
        "optimizer states and master weights go to the host; weights and gradients stay",
    ),
    (
        _one_short_state,
        "8-bit Adam was given one byte for both of its states",
        "it keeps as many states as Adam, of one byte each",
    ),
    (
        _whole_master_copy,
        "the master copy was not split",
        "ZeRO splits it together with the optimizer's states, from stage 1 on",
    ),
    (
        _frozen_master_copy,
        "weights that are not trained were given a master copy",
        "they need no gradients, no states and no master copy: take the trained share of it too",
    ),
    (
        _master_copy_of_sgd,
        "the master copy was left out where the optimizer keeps no states",
        "it belongs to the precision, not to the optimizer: sgd needs it too",
    ),
]


def _peak_mistake(case: Any, got: Any, want: Any) -> tuple[str, str]:
    if got[1] < got[0]:
        return (
            "the peak is less than what is always in memory",
            "the peak is all that is there at the fullest moment: what stays, and what comes and goes",
        )
    passing = want[1] - want[0]
    if passing and case["trained"] < 1 and close(got[1] - got[0], passing * case["trained"], rtol=1e-9):
        return (
            "only the trained weights were copied for the peak",
            "autocast copies every weight that a pass uses, trained or not",
        )
    if case["zero_stage"] and case["gpus"] > 1:
        return "the peak is wrong", "temporary buffers are never split: each GPU has them in full while they last"
    return "the peak is wrong", "a copy that autocast makes lives only while the forward and backward pass need it"


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
        return "the bytes were rounded: shares of a byte count", _next(case)
    if case["gpus"] > 1 and close(mine, right * case["gpus"]):
        return (
            f"that is what all {case['gpus']} GPUs hold together; the question is one of them",
            "look at one GPU: ZeRO leaves it a share of some parts, and it holds each of the others once",
        )
    if case["trained"] < 1 and mine > right:
        return (
            "weights that are not trained need no gradients, states or master copy",
            "which of the parts did you count for the trained share alone, and which for all weights?",
        )
    return _other_mistake(case, mine, right), _next(case)


def _other_mistake(case: Any, mine: float, right: float) -> str:
    if not mine > 0:
        return "every parameter costs something"
    if case["trained"] < 1 and mine < right:
        return "frozen weights take memory too"
    if case["offload"] and mine > right:
        return "offloaded bytes were still counted on the GPU"
    if case["offload"] and mine < right:
        return "something that stays on the GPU was left out"
    if case["zero_stage"] and mine > right:
        return f"ZeRO stage {case['zero_stage']} splits more than that"
    if case["zero_stage"] and mine < right:
        return f"ZeRO stage {case['zero_stage']} does not split all of that"
    if case["gpus"] > 1 and mine < right:
        return "without ZeRO, every GPU holds everything"
    if case["precision"] == "autocast" and close(mine, right + 2):
        return "a copy that comes and goes was counted as resident"
    if case["precision"] == "bf16" and mine > right:
        return "something of a pure bf16 training was counted in fp32"
    if "8 bit" in case["optimizer"] and mine > right:
        return "the states of an 8-bit optimizer have one byte each"
    if case["optimizer"] in ("sgd", "momentum") and mine > right:
        return f"{case['optimizer']} keeps fewer states than that"
    return "weights, copies, gradients and states add up to something else"


def _next(case: Any) -> str:
    if case["offload"]:
        return "optimizer states and master weights go to the host; weights and gradients stay"
    if case["zero_stage"]:
        return "stage 1 splits states and master weights, stage 2 gradients too, stage 3 weights too; the rest is whole"
    return "write the four parts down for this row of the table and add them up"
