"""Blocks that tell by their numbers how often they ran, what was kept of the first run, and what was saved."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ROWS, WIDTH = 6, 8  # small: a case takes milliseconds
_DTYPES = ("float64", "float32", "bfloat16", "float16")
_GROWTH = 0.25  # of a block's factor in each run, and per tensor saved: far more than rounding in any dtype


class CheckpointedBlock:
    """What is checkpointed: it notes how it was run."""

    def __init__(self, case: Any) -> None:
        import torch

        self.case, self.dropout = case, case["dropout"]
        self.first_made: Any = None  # a weak reference to what the first run made in between
        self.runs: list[list[Any]] = []  # dtype, whether a graph is made, and what is known of the inputs
        self.states: list[Any] = []  # the generator's, at the start of each run
        drawn = torch.Generator().manual_seed(case["seed"] + 1)
        dtype = torch.float32 if case["autocast"] else torch.float64
        # Small enough that no tanh is flat: every element of a mask then counts in the gradient.
        self.weight = (0.2 * torch.randn(WIDTH, WIDTH, generator=drawn, dtype=dtype)).requires_grad_()

    def __call__(self, x: Any, *more: Any) -> Any:
        import torch
        from torch.multiprocessing.reductions import StorageWeakRef

        needs = any(one.requires_grad for one in more if isinstance(one, torch.Tensor))
        kinds = ", ".join("tensor" if isinstance(one, torch.Tensor) else "number" for one in (x, *more))
        self.states.append(torch.get_rng_state())
        run: list[Any] = [
            "",
            torch.is_grad_enabled(),
            needs,
            kinds,
            isinstance(x, torch.Tensor) and x.grad_fn is not None,
        ]
        self.runs.append(run)
        product, rest = x @ self.weight.T, list(more)
        run[0] = str(product.dtype).removeprefix("torch.")
        product = product * self._factor(run[0])
        if self.case["is_between"]:
            rest.reverse()
        if self.case["offset"]:
            product = product + rest.pop(0)
        if self.case["factor"]:
            product = product * rest.pop(0)
        inner = torch.tanh(product)
        self.first_made = self.first_made or StorageWeakRef(inner.untyped_storage())
        return torch.nn.functional.dropout(torch.sin(inner), self.dropout)

    def _factor(self, dtype: str) -> float:
        """It grows with each run, in the second one with what memory still holds of the first, and by dtype."""
        number = len(self.runs) - 1
        is_held = number == 1 and self.first_made is not None and not self.first_made.expired()
        return 1 + _GROWTH * (number + 2 * is_held + _DTYPES.index(dtype))


class ShiftedTensors:
    """Hooks that count what autograd holds, and give each tensor back shifted by that count after the forward pass."""

    def __init__(self, weight: Any) -> None:
        self.weight, self.count, self.after_forward = weight, 0, 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, whatever is saved passes through the hooks."""
        import torch

        with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
            yield
        self.after_forward = self.count

    def _pack(self, tensor: Any) -> Any:
        if tensor.untyped_storage().data_ptr() == self.weight.untyped_storage().data_ptr():
            return tensor
        held = _Held(tensor.detach())  # an output that holds itself would never be let go
        self.count += 1
        weakref.finalize(held, self._let_go)
        return held

    def _unpack(self, held: Any) -> Any:
        return held.tensor + _GROWTH * self.after_forward if isinstance(held, _Held) else held

    def _let_go(self) -> None:
        self.count -= 1


class _Held:
    """A tensor that autograd saved; autograd lets it go when nothing needs it any more."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def block_inputs(case: Any) -> tuple[Any, list[Any]]:
    """The tensor that a gradient is asked of, and the block's inputs, which come from an operation on it."""
    import torch

    drawn = torch.Generator().manual_seed(case["seed"] + 2)
    dtype = torch.float32 if case["autocast"] else torch.float64
    first = torch.randn(ROWS, WIDTH, generator=drawn, dtype=dtype).requires_grad_()
    inputs: list[Any] = [first * 1.5]
    if case["offset"]:
        offset = torch.randn(WIDTH, generator=drawn, dtype=dtype)
        inputs.append(offset + first[0] if case["is_attached"] else offset)
    if case["factor"]:
        inputs.append(case["factor"])
    return first, [inputs[0], *reversed(inputs[1:])] if case["is_between"] else inputs


def autocast_of(case: Any) -> Any:
    import torch

    dtype = getattr(torch, case["autocast"] or "bfloat16")
    return torch.autocast("cpu", enabled=bool(case["autocast"]), dtype=dtype)
