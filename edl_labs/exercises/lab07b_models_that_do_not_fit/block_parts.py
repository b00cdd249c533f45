"""Drawn blocks of split_a_block, and what each rank's part contributes to the two sums."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.errors import Wrong
from edl_labs.exercises.ranks_in_turn import distance, listed

SAME = 1e-9  # of the length: float64, added in another order
BIASES = {"mlp": "down_bias", "attention": "out_bias"}
AXES = {"up": 1, "up_bias": 0, "down": 0, "query": 1, "key": 1, "value": 1, "out": 0}  # along which a tensor is cut
_FIRST, _LAST = {"mlp": "up", "attention": "query"}, {"mlp": "down", "attention": "out"}


def drawn_block(case: Any) -> tuple[dict[str, Any], Any, Any]:
    """The whole block, its input and the gradient of its output."""
    import torch

    drawn = torch.Generator().manual_seed(case["seed"])

    def make(*shape: int) -> Any:
        return torch.randn(*shape, generator=drawn, dtype=torch.float64) / math.sqrt(shape[0])

    width, tokens = case["width"], case["tokens"]
    if case["kind"] == "mlp":
        block: dict[str, Any] = {"kind": "mlp", "up": make(width, case["hidden"]), "up_bias": make(case["hidden"])}
        block |= {"down": make(case["hidden"], width), "down_bias": 1 + make(width)}
    else:
        block = {"kind": "attention", "heads": case["heads"]}
        block |= {name: make(width, width) for name in ("query", "key", "value", "out")}
        block["out_bias"] = 1 + make(width)
    return block, make(tokens, width) * tokens, make(tokens, width) * tokens


def judge_parts(case: Any, got: Any, phase: str) -> None:
    """Wrong where a rank passes something else to the sum of a phase than what its own columns give.

    The output is the sum of these parts, and they follow from the shards: no count of calls has to be believed. A
    rank's part of the output may carry any share of the bias; that the shares make one bias shows in the output.
    """
    for rank, ((mine, *_), right) in enumerate(
        zip(got["sums"][phase], _parts(case, got["shapes"], phase), strict=True)
    ):
        forms = [listed(right), listed(right.T)]  # a sum may be taken over the transposed part
        if phase == "forward":
            bias = drawn_block(case)[0][BIASES[case["kind"]]].expand_as(right)
            forms = [_with_share(mine, part, listed(one)) for part, one in zip(forms, (bias, bias.T), strict=True)]
        off = min(distance(mine, form) for form in forms)
        if off > SAME:
            what = "of the output" if phase == "forward" else "of the input's gradient"
            why = f"the results are right, but rank {rank}'s tensor in the {phase} all-reduce has a relative error "
            why += f"of {off:.2g}"
            then = f"pass to comm.all_reduce only the part {what} that comes from the rank's own shard"
            raise Wrong(f"in your code, a rank contributes something other than its part {what}", why=why, next=then)


def whole_pass(block: dict[str, Any], x: Any, upstream: Any) -> tuple[Any, Any, dict[str, Any]]:
    """The output of the whole block, and the gradients of its input and of all of its tensors."""
    import torch

    leaves = {name: one.clone().requires_grad_() for name, one in block.items() if isinstance(one, torch.Tensor)}
    entered, columns = x.clone().requires_grad_(), leaves[_FIRST[block["kind"]]].shape[1]
    output = _output({**block, **leaves}, entered, slice(0, columns)) + leaves[BIASES[block["kind"]]]
    (output * upstream).sum().backward()
    return output.detach(), entered.grad, {name: one.grad for name, one in leaves.items()}


def _with_share(mine: list[float], part: list[float], bias: list[float]) -> list[float]:
    """A part with the share of the bias that comes nearest to what a rank added."""
    if len(mine) != len(part) or not all(map(math.isfinite, mine)):
        return part
    rest = math.fsum((a - b) * c for a, b, c in zip(mine, part, bias, strict=True))
    share = rest / math.fsum(value * value for value in bias)
    return [a + share * b for a, b in zip(part, bias, strict=True)]


def _parts(case: Any, shapes: Any, phase: str) -> list[Any]:
    """What each rank's neighbouring columns give: their part of the output, or of the input's gradient."""
    block, x, upstream = drawn_block(case)
    parts, begin = [], 0
    for _, columns in shapes[_FIRST[case["kind"]]]:
        entered = x.clone().requires_grad_()
        part = _output(block, entered, slice(begin, begin := begin + columns))
        if phase == "backward":
            (part * upstream).sum().backward()
        parts.append(part.detach() if phase == "forward" else entered.grad)
    return parts


def _output(block: Any, x: Any, columns: slice) -> Any:
    """The product of some hidden channels, or of the heads in these columns, with the rows that belong to them."""
    import torch

    if block["kind"] == "mlp":
        hidden = torch.nn.functional.gelu(x @ block["up"][:, columns] + block["up_bias"][columns])
        return hidden @ block["down"][columns]
    size = len(block["query"]) // block["heads"]
    mixed = []
    for start in range(columns.start, columns.stop, size):
        query, key, value = (x @ block[name][:, start : start + size] for name in ("query", "key", "value"))
        mixed.append(torch.softmax(query @ key.T / math.sqrt(size), 1) @ value)
    return torch.cat(mixed, 1) @ block["out"][columns] if mixed else torch.zeros_like(x) * x.sum()
