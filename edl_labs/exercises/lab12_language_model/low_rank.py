"""lora: a layer with a low-rank adapter, merged, and what training it takes."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import Sentence, digest

_SAME = 1e-5  # of the largest value: fp32, in another order of sums
_NEXT = {
    "adapted": "compute x @ weight.T, and add alpha / rank times the product of x with `down` and `up`",
    "merged": "which product of `up` and `down` has the shape of the weight?",
    "bytes": "count 2 bytes for each number of the frozen weight, and 16 for each number of `down` and `up`",
    "flop": "list the products of the forward pass, and for each of them the gradients that are needed",
}


@exercise("lora")
class Lora(Exercise):
    """`adapted` and `merged`, each called twice with the same tensors, `state_bytes` and `step_flop`."""

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        weights = {name: value for name, value in _tensors(given).items() if name != "x"}
        return {
            "adapted": _second(student.adapted, _tensors(given)),
            "merged": _second(student.merged, weights),
            "bytes": [float(student.state_bytes(*one[1:])) for one in given["layers"]],
            "flop": [float(student.step_flop(*one)) for one in given["layers"]],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name, called in (("adapted", "adapted"), ("merged", "merged")):
            shapes = [[len(one), len(one[0]) if one else 0] for one in (got[name], want[name])]
            if shapes[0] != shapes[1]:
                why = f"got {shapes[0][0]} × {shapes[0][1]}, expected {shapes[1][0]} × {shapes[1][1]}"
                raise Wrong(f"`{called}` returns a table of the wrong shape.", why=why, next=_NEXT[name])
            flat = [[one for row in table for one in row] for table in (got[name], want[name])]
            self._require(case, name, *flat, atol=_SAME * max(map(abs, flat[1])))
        for name in ("bytes", "flop"):
            self._require(case, name, got[name], want[name])

    def _require(self, case: Any, name: str, got: Any, want: Any, *, atol: float = 0.0) -> None:
        for mine, right in zip(got, want, strict=True):
            if not close(mine, right, atol=atol):
                called = {"bytes": "state_bytes", "flop": "step_flop"}.get(name, name)
                seen = f"got {mine:.6g}, expected {right:.6g}"
                raise _named(case, name, got) or Wrong(
                    f"Got a wrong number from `{called}`.", why=seen, next=_NEXT[name]
                )

    def student_inputs(self, case: Any) -> Any:
        """Tensors and numbers by the parameters' names, of the first layer."""
        sizes = dict(zip(("positions", "rows", "columns", "rank"), case["layers"][0], strict=True))
        return {**_tensors(case), **sizes}

    def format_case(self, case: Any) -> str:
        """Shapes, alpha and the first layer's sizes."""
        shapes = f"weight {len(case['weight'])} × {len(case['weight'][0])}, rank {len(case['down'])}"
        return f"{shapes}, alpha {case['alpha']}; positions, rows, columns, rank {case['layers'][0]}"

    def format_answer(self, case: Any, got: Any) -> str:
        """The beginning of each part."""
        return f"adapted begins with {got['adapted'][0][:3]}; bytes {got['bytes']}; operations {got['flop']}"


def _tensors(given: Any) -> dict[str, Any]:
    import torch

    return {"alpha": given["alpha"]} | {name: torch.tensor(given[name]) for name in ("x", "weight", "down", "up")}


def _second(function: Any, tensors: dict[str, Any]) -> list[list[float]]:
    """What a second call with the same tensors gives: it shows whether the first has changed them."""
    import torch

    function(**tensors)
    table = torch.as_tensor(function(**tensors)).detach().to(torch.float64)
    return [[float(one) for one in row] for row in (table if table.ndim == 2 else table.reshape(1, -1))]


def _named(case: Any, name: str, answers: Any) -> Wrong | None:
    """The known mistake that gives this part."""
    mine = digest(answers)
    for slip, (what, why, then) in _SAID.items():
        if case["slips"][name].get(slip) == mine:
            return Wrong(what, why=why, next=then)
    return None


_SAID: dict[str, Sentence] = {
    "alpha_alone": (
        "Your function multiplies the adapter by alpha, not by alpha / rank.",
        "the factor is alpha / rank, so that a different rank does not need a different learning rate",
        "divide by the rank, the number of rows of `down`",
    ),
    "no_factor": (
        "Your function adds the adapter without its factor.",
        "the factor alpha / rank is missing",
        "multiply the adapter by alpha / rank",
    ),
    "factor_on_all": (
        "Your function also multiplies the frozen product by the factor.",
        "alpha / rank belongs only to the adapter",
        "multiply the adapter by the factor before you add it",
    ),
    "adapter_alone": (
        "Your function leaves out the frozen weight.",
        "your function returned only the adapter's part",
        "add x @ weight.T",
    ),
    "in_place": (
        "Your function modified the frozen weight.",
        "a second call with the same tensors adds the adapter twice",
        "return a new tensor: weight + …, not weight += …",
    ),
    "subtracted": (
        "Your function subtracts the adapter.",
        "merging adds the adapter; subtracting would undo a merge",
        "add the adapter",
    ),
    "frozen_trained": (
        "Your function counts gradients and optimizer states for the frozen weight.",
        "the frozen weight is not trained, so it takes only 2 bytes per number",
        "count 16 bytes per number only for `down` and `up`",
    ),
    "frozen_forgotten": (
        "Your function does not count the bytes of the frozen weight.",
        "every pass needs this weight",
        "add 2 bytes for each number of the frozen weight",
    ),
    "no_gradients": (
        "Your function does not count the adapter's gradients.",
        "14 bytes per number are only the weight, the master copy and the moments",
        "add 2 bytes per number for a gradient in bf16",
    ),
    "one_matrix": (
        "Your function leaves out one of the two thin matrices.",
        "`down` has rank × columns numbers, and `up` has rows × rank numbers",
        "count the numbers of both matrices",
    ),
    "frozen_gradient": (
        "Your function counts a gradient of the frozen weight.",
        "this gradient would be a third product of that size, but it is never used",
        "count two products with W: the forward pass and the gradient of x",
    ),
    "forward_alone": (
        "Your function does not count the backward pass.",
        "gradients are computed with matrix products too",
        "add the products of the backward pass",
    ),
    "stops_at_adapter": (
        "Your function does not count the gradient that passes through the frozen weight.",
        "earlier layers need the gradient of x, part of which comes through W",
        "count two products with W: the forward pass and the gradient of x",
    ),
    "adapter_like_frozen": (
        "Your function does not count the gradients of the adapter's weights.",
        "`down` and `up` are trained: each needs one product for its own gradient and one for its input's gradient",
        "count three times the forward pass for the thin matrices",
    ),
    "multiplied_out": (
        "Your function counts the product of the two thin matrices.",
        "x @ down.T has only rank columns, so its product with up.T is cheap too",
        "count 2 · positions · rank · (rows + columns) for the forward pass",
    ),
}
