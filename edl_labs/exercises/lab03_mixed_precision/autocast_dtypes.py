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

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Answers that take no notice of `dtype`, or are those of the other device type."""
        rows = list(zip(cases, got, want, strict=True))
        if got == want:
            return None
        return _other_devices(rows) or _ignores_dtype(rows)

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that a single simple rule can bring."""
        return score_above_chance(fractions, chance=CHANCE)


_Row = tuple[Any, Any, Any]  # a case, the answer to it, and the right one
_SHORT = ("float16", "bfloat16")


def _other_devices(rows: list[_Row]) -> Wrong | None:
    """Wrong for all operators that are float32 on one device type and not cast on the other, and as on the other."""
    alone = [row for row in rows if len(row[0]["inputs"]) == 1 and row[0]["inputs"][0] in _SHORT]
    kinds: dict[str, set[tuple[str, bool]]] = {}
    for case, _, right in alone:
        kinds.setdefault(case["op"], set()).add((case["device_type"], right == "float32"))
    differing = {op for op, seen in kinds.items() if len({is_full for _, is_full in seen}) > 1}
    if not differing:
        return None
    for case, mine, right in rows:
        is_swapped = case["op"] in differing and len(case["inputs"]) == 1 and case["inputs"][0] in _SHORT
        if mine != ((case["inputs"][0] if right == "float32" else "float32") if is_swapped else right):
            return None
    return Wrong(
        "your code swaps the two device types",
        why="your answers are right for all operators that cpu and cuda treat alike; for all others, you returned what "
        "the other device type returns",
        next="on which device type does autocast cast more operators to float32?",
    )


def _ignores_dtype(rows: list[_Row]) -> Wrong | None:
    """One short dtype for each device type, and right wherever autocast is to that dtype or nothing is cast."""
    cast = [row for row in rows if row[2] == row[0]["dtype"] not in row[0]["inputs"]]
    own = {device: {mine for case, mine, _ in cast if case["device_type"] == device} for device in ("cpu", "cuda")}
    if not all(len(names) == 1 and names <= {*_SHORT} for names in own.values()):
        return None
    usual = {device: names.pop() for device, names in own.items()}
    asked = {(case["device_type"], case["dtype"]) for case, *_ in cast}
    if not all((device, short) in asked for device in own for short in _SHORT):
        return None
    if not all(mine in (right, usual[case["device_type"]]) for case, mine, right in rows):
        return None
    if any(mine != right and case["dtype"] == usual[case["device_type"]] for case, mine, right in rows):
        return None
    return Wrong(
        "your code ignores `dtype`",
        why=f"wherever autocast casts to a short dtype, you returned {usual['cuda']} on cuda and {usual['cpu']} on cpu",
        next="return `dtype` where an operator runs in the short dtype: either one is possible on both device types",
    )


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
