"""lora: a layer with a low-rank adapter, merged, and what training it takes."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import Sentence, digest

_SAME = 1e-5  # of the largest value: fp32, in another order of sums
_NEXT = {
    "adapted": "x @ weight.T, plus alpha / rank times x through down and up",
    "merged": "which product of up and down has the shape of the weight?",
    "bytes": "the frozen weight takes 2 bytes a number, and each number of down and up 16",
    "flop": "list the products of the forward pass, and for each the gradients that are needed",
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
                why = f"it is {shapes[0][0]} × {shapes[0][1]}; expected {shapes[1][0]} × {shapes[1][1]}"
                raise Wrong(f"{called} has the wrong shape.", why=why, next=_NEXT[name])
            flat = [[one for row in table for one in row] for table in (got[name], want[name])]
            self._require(case, name, *flat, atol=_SAME * max(map(abs, flat[1])))
        for name in ("bytes", "flop"):
            self._require(case, name, got[name], want[name])

    def _require(self, case: Any, name: str, got: Any, want: Any, *, atol: float = 0.0) -> None:
        for mine, right in zip(got, want, strict=True):
            if not close(mine, right, atol=atol):
                called = {"bytes": "state_bytes", "flop": "step_flop"}.get(name, name)
                seen = f"{mine:.6g} came back, and {right:.6g} is right"
                raise _named(case, name, got) or Wrong(f"{called}: another number.", why=seen, next=_NEXT[name])

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
        return f"adapted begins {got['adapted'][0][:3]}; bytes {got['bytes']}; operations {got['flop']}"


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
        "The adapter is multiplied by alpha alone.",
        "the factor is alpha / rank, so that another rank needs no other learning rate",
        "divide by the rank, the number of rows of down",
    ),
    "no_factor": ("The adapter has no factor.", "alpha / rank is left out", "multiply the adapter by alpha / rank"),
    "factor_on_all": (
        "The frozen product is multiplied by the factor as well.",
        "alpha / rank belongs to the adapter",
        "multiply before you add",
    ),
    "adapter_alone": ("The frozen weight is left out.", "only the adapter's part came back", "add x @ weight.T"),
    "in_place": (
        "Your function modified the frozen weight.",
        "a second call with the same tensors adds the adapter twice",
        "return a new tensor: weight + …, not weight += …",
    ),
    "subtracted": ("The adapter is subtracted.", "merging adds it; subtracting takes a merged one out", "add it"),
    "frozen_trained": (
        "The frozen weight has gradients and optimizer states.",
        "it is not trained, and takes its 2 bytes a number",
        "16 bytes a number, for down and up only",
    ),
    "frozen_forgotten": (
        "The frozen weight takes no bytes.",
        "every pass needs it",
        "add 2 bytes for each of its numbers",
    ),
    "no_gradients": (
        "The adapter's gradients take no bytes.",
        "14 bytes a number are weight, master copy and moments",
        "add 2 bytes for a gradient in bf16",
    ),
    "one_matrix": (
        "One of the two thin matrices is left out.",
        "down has rank × columns numbers, up rows × rank",
        "both",
    ),
    "frozen_gradient": (
        "A gradient of the frozen weight is computed.",
        "its product is the third of three, and it is never used",
        "forward, and backward to x: two products with W",
    ),
    "forward_alone": ("The backward pass has no operations.", "gradients are matrix products too", "add them"),
    "stops_at_adapter": (
        "No gradient passes through the frozen weight.",
        "the layers before need the gradient of x, which comes through W as well",
        "two products with W: forward, and backward to x",
    ),
    "adapter_like_frozen": (
        "The adapter's weights get no gradient.",
        "down and up are trained: each has a product for its gradient and one for its input's",
        "three times the forward pass for the thin matrices",
    ),
    "multiplied_out": (
        "The thin matrices are multiplied with each other first.",
        "x @ down.T has rank columns, and its product with up.T is thin too",
        "2 · positions · rank · (rows + columns) forward",
    ),
}
