"""A checkpoint as a program that the judge plays on values of its own: what is kept shows in what is read later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from edl_labs.device import torch_threads
from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.checkpointed_blocks import ROWS, WIDTH, autocast_of

_MASKS = 64  # tables of which a run draws one: few, and a wrong state of the generator seldom draws the same
_STATES = 40_000  # elements: some copies of the generator's state, which has 5056 bytes
_ENTRIES = ("dropout", "autocast", "offset", "factor", "is_between", "is_attached")


class _RecordedBlock:
    """The block of a case, with masks from a table: what the generator draws is the number of a table."""

    def __init__(self, case: Any, weight: Any, masks: Any) -> None:
        self.case, self.weight, self.masks = case, weight, masks

    def __call__(self, x: Any, *more: Any) -> Any:
        import torch
        from torch.utils._python_dispatch import _disable_current_modes

        product, rest = x @ self.weight.T, list(more)
        if self.case["is_between"]:
            rest.reverse()
        if self.case["offset"]:
            product = product + rest.pop(0)
        if self.case["factor"]:
            product = product * rest.pop(0)
        found = torch.sin(torch.tanh(product))
        with _disable_current_modes():
            drawn = int(torch.randint(_MASKS, ()))
        return found * self.masks[drawn].to(found.dtype) if self.case["dropout"] else found


def recorded(checkpoint: Any, case: Any) -> str:
    """What `checkpoint.apply(run, *inputs)` does in a forward and a backward pass, and in the forward pass after it."""
    import torch

    from edl_labs.graph.tensor_programs import Recorder

    inputs = _drawn(case, seed=0)
    recorder = Recorder(inputs, most_constants=_STATES)
    torch.manual_seed(case["seed"])
    with torch_threads(1), recorder.recording():
        first, weight = (inputs[name].detach().requires_grad_() for name in ("first", "weight"))
        block = _RecordedBlock(case, weight, inputs["masks"])
        given: list[Any] = [first * 1.5]
        if case["offset"]:
            given.append(inputs["offset"] + first[0] if case["is_attached"] else inputs["offset"])
        if case["factor"]:
            given.append(case["factor"])
        given = [given[0], *reversed(given[1:])] if case["is_between"] else given
        with autocast_of(case):
            output = checkpoint.apply(block, *given)
        (output.double() * inputs["upstream"]).sum().backward(inputs=[first])
        with autocast_of(case):
            then = checkpoint.apply(block, *given)
    found = {"output": output, "input gradient": first.grad, "weight gradient": weight.grad, "next output": then}
    return recorder.text({name: one for name, one in found.items() if one is not None})


def facts(case: Any, program: str) -> dict[str, Any]:
    """What a program gives on the judge's values, as weighted sums of rows, and what is kept for the backward pass."""
    played = _once(program, json.dumps({name: case[name] for name in (*_ENTRIES, "values_seed")}))
    return {"sums": {name: _sums(one) for name, one in played.outputs.items()}, "kept_bytes": _kept_bytes(played)}


def judge_program(mine: Mapping[str, Any], right: Mapping[str, Any], within: float) -> None:
    """Wrong where a program gives other values than the reference's, or keeps more until the backward pass."""
    for name, wanted in right["sums"].items():
        found = mine["sums"].get(name, [])
        most = max(map(abs, wanted)) or 1.0
        if len(found) != len(wanted) or not all(
            abs(a - b) <= within * most for a, b in zip(found, wanted, strict=True)
        ):
            why = (
                f"your Checkpoint was recorded, and the record was replayed on other values: the {name} is wrong there"
            )
            then = "compute everything only from the arguments of forward and backward"
            raise Wrong(f"on other values, your {name} differs from a plain run", why=why, next=then)
    if mine["kept_bytes"] > right["kept_bytes"]:
        why = f"the backward pass reads {mine['kept_bytes']} bytes that were kept for it; the block's inputs have "
        why += f"{right['kept_bytes']}"
        then = "recompute everything else that the backward pass needs from the inputs"
        raise Wrong("your code keeps more than the inputs", why=why, next=then)


def _kept_bytes(played: Any) -> int:
    """What was there before the gradient of the output was known, and what the gradients follow from afterwards.

    Kernels that lead to no gradient are no part of the backward pass: a loss, a later run of the block, what is only
    looked at. Of the program's inputs, the offset alone is one of the block's inputs: a copy of it is as large.
    """
    upstream, offset = played.inputs_at["upstream"], played.inputs_at["offset"]
    others = set(played.inputs_at.values()) - {offset}
    before, kept = {offset}, set[int]()
    backward = played.leading_to(["input gradient", "weight gradient"])
    is_later = False
    for at, kernel in enumerate(played.trace):
        is_later = is_later or upstream in kernel.reads
        if not is_later:
            before |= kernel.writes
            others -= kernel.writes  # an input that is written into keeps what was written
        elif at in backward:
            kept |= (kernel.reads & before) - others
    return sum(played.bytes_of[one] for one in kept if one in played.bytes_of)


def _sums(tensor: Any) -> list[float]:
    import torch

    rows = tensor.double().reshape(-1, tensor.shape[-1])
    return [float(one) for one in rows @ torch.arange(1, rows.shape[1] + 1, dtype=torch.float64).sqrt()]


def _drawn(case: Any, *, seed: int) -> dict[str, Any]:
    """The tensors that a program works on; `seed` draws what it is played on."""
    import torch

    drawn = torch.Generator().manual_seed(seed)
    dtype = torch.float32 if case["autocast"] else torch.float64

    def normal(*shape: int) -> Any:
        return torch.randn(shape, generator=drawn, dtype=torch.float64).to(dtype)

    found = {"first": normal(ROWS, WIDTH), "weight": 0.2 * normal(WIDTH, WIDTH), "offset": normal(WIDTH)}
    masks = torch.rand(_MASKS, ROWS, WIDTH, generator=drawn) >= case["dropout"]
    upstream = torch.randn(ROWS, WIDTH, generator=drawn, dtype=torch.float64)
    return {**found, "masks": masks.to(dtype) / (1 - case["dropout"]), "upstream": upstream}


@lru_cache(maxsize=32)  # the cases of two submissions
def _once(program: str, case: str) -> Any:
    from edl_labs.graph.tensor_programs import ProgramError, play

    entries = json.loads(case)
    try:
        with torch_threads(1):
            return play(program, _drawn(entries, seed=entries["values_seed"]))
    except ProgramError as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None
