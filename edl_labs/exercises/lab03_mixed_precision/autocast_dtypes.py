"""autocast_dtype: operators, input dtypes and device types, drawn so that no simple rule gets far."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.errors import Wrong

_OTHER_NAMES = ("fp16", "half", "bf16", "fp32", "float", "fp64", "double")
_IN_THE_TABLE = ("linear", "layer_norm", "batch_norm", "gelu", "relu", "softmax")
_IN_THE_TEXT = ("sum", "mean", "exp", "mse_loss", "cross_entropy")
_OF_EACH_KIND = ("add", "scaled_dot_product_attention")  # where two dtypes meet, and a name that is easily shortened
# What "it keeps its first input's dtype", "it is always float32" and the like get right, at most.
CHANCE = 0.7


@exercise("autocast_dtype")
class AutocastDtype(Exercise):
    """In which dtype an operator's result comes out of autocast, on CPU and on CUDA.

    `student.autocast_dtype(op, inputs, device_type=, dtype=)` names the result's dtype; corrected for chance.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        answer = student.autocast_dtype(
            given["op"], list(given["inputs"]), device_type=given["device_type"], dtype=given["dtype"]
        )
        return str(answer).removeprefix("torch.") if type(answer).__name__ == "dtype" else answer

    def is_public(self, case: Any) -> bool:
        """What the lab's table and text show, and two more: goldens with every operator would contain the answers."""
        return case["op"] in (*_IN_THE_TABLE, *_IN_THE_TEXT, *_OF_EACH_KIND)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got != want:
            why = (
                f"the case is {case['op']} of {' and '.join(case['inputs'])}, with autocast to {case['dtype']} on "
                f"{case['device_type']}"
            )
            raise Wrong(_mistake(case, got), why=why, next=_next(case, got))

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that a single simple rule can bring."""
        return score_above_chance(fractions, chance=CHANCE)


def _mistake(case: Any, got: str) -> str:
    if got in _OTHER_NAMES or got.startswith("torch."):
        return f"{got[:40]!r} is not how this lab writes a dtype"
    if got not in ("float16", "bfloat16", "float32", "float64"):
        return f"{got[:40]!r} is not a dtype that autocast produces"
    if got in ("float16", "bfloat16") and got not in (case["dtype"], *case["inputs"]):
        return f"you returned {got}, but neither an input nor autocast has this dtype here"
    if got in ("float16", "bfloat16") and got != case["dtype"]:
        return f"you returned {got}, but autocast also casts inputs in the other short dtype"
    if "float64" in case["inputs"] and len(set(case["inputs"])) > 1:
        return "your answer is not float64, the wider of the two dtypes"
    if "float64" in case["inputs"]:
        return "your answer casts float64, but autocast leaves float64 unchanged"
    return f"the result of {case['op']} is not in {got} here"


def _next(case: Any, got: str) -> str:
    if got not in ("float16", "bfloat16", "float32", "float64"):
        return "write it as 'float32', 'float16', 'bfloat16' or 'float64'"
    if "float64" in case["inputs"]:
        return "whatever the operator, do not cast float64; if the other operand is narrower, widen it"
    if case["op"] in ("sum", "mean", "exp"):
        return (
            "look in the text above: for each device type, it says which of "
            "sum, exp and mean are float32, and which are not cast"
        )
    if case["op"] in ("mse_loss", "cross_entropy"):
        return "return float32 for losses on both device types"
    if case["op"] in ("layer_norm", "softmax"):
        return "is this operator on the float32 list of this device type? The lists of CPU and CUDA differ"
    if len(set(case["inputs"])) > 1:
        return "if nothing is cast, return the wider of the two dtypes, as without autocast"
    if case["op"] == "scaled_dot_product_attention":
        return "this operator runs in the short dtype on both device types: is it on your list under exactly this name?"
    if case["op"] in _IN_THE_TABLE:
        return (
            "find this operator and this device in the table above: what is the result for a "
            "short and for a float32 input?"
        )
    if case["device_type"] == "cuda":
        return "look in torch's documentation of autocast, which lists the CUDA operators that are cast to float32"
    return 'call this operator on small tensors under torch.autocast("cpu", dtype=...), and look at .dtype'
