"""Activations: what autograd keeps for the backward pass, counted by hooks, with and without checkpointing."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.numerics.step_memory import StepRecorder
from edl_labs.roofline.operators.recorded_run import explained
from edl_labs.units import byte_count
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class SavedActivations(Value):
    """What a forward and backward pass kept for the gradient.

    `count` and `count_bytes` add up every tensor that autograd was holding at the peak, `peak_bytes` counts storages
    that several of them share once: it is what memory holds. Parameters and buffers are left out: they are there
    without a backward pass, too.
    `live_peak_bytes` is the peak of all tensors made in the pass: activations, gradients and what is only in passing,
    which is what a GPU's peak memory shows.
    """

    count: int
    count_bytes: int
    peak_bytes: int
    after_forward: int
    after_forward_bytes: int
    live_peak_bytes: int
    backward_ran: bool

    def __str__(self) -> str:
        return (
            f"at most {self.count} tensors saved at once, {byte_count(self.peak_bytes)}; "
            f"{self.after_forward} after the forward pass, {byte_count(self.after_forward_bytes)}"
        )


class _Held:
    """A tensor that autograd saved; the counter forgets it when autograd does."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class SavedTensors:
    """Counts what autograd holds while it is entered: now (`count`, `held_bytes`) and at the most."""

    @checked_arguments()
    def __init__(self, parameters: Iterable[torch.Tensor] = ()) -> None:
        self._left_out = {_place(parameter) for parameter in parameters}
        # Storages of what is alive: how many saved tensors share one, and its size.
        self._storages: dict[Any, list[int]] = {}
        self.count = self.count_bytes = self.held_bytes = 0
        self.peak_count = self.peak_count_bytes = self.peak_bytes = 0

    @contextmanager
    def watching(self) -> Iterator[SavedTensors]:
        """Inside, each tensor that autograd saves is counted until it is let go."""
        with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
            yield self

    def _pack(self, tensor: torch.Tensor) -> Any:
        place = _place(tensor)
        if place in self._left_out:
            return tensor
        held = _Held(tensor)
        nbytes = tensor.numel() * tensor.element_size()
        stored = self._storages.setdefault(place, [0, tensor.untyped_storage().nbytes()])
        stored[0] += 1
        self.held_bytes += stored[1] if stored[0] == 1 else 0
        self.count, self.count_bytes = self.count + 1, self.count_bytes + nbytes
        self._note_peak()
        weakref.finalize(held, self._let_go, place, nbytes)
        return held

    def _unpack(self, held: Any) -> torch.Tensor:
        return held.tensor if isinstance(held, _Held) else held

    def _let_go(self, place: Any, nbytes: int) -> None:
        self.count, self.count_bytes = self.count - 1, self.count_bytes - nbytes
        stored = self._storages[place]
        stored[0] -= 1
        if not stored[0]:
            self.held_bytes -= stored[1]
            del self._storages[place]

    def _note_peak(self) -> None:
        self.peak_count = max(self.peak_count, self.count)
        self.peak_count_bytes = max(self.peak_count_bytes, self.count_bytes)
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)


@checked_arguments(model="Pass an nn.Module or a function, then its inputs: saved_activations(model, x).")
def saved_activations(
    model: Callable[..., Any], inputs: Any, *, loss: Callable[[Any], torch.Tensor] | None = None, backward: bool = True
) -> SavedActivations:
    """What autograd keeps for `model(*inputs)`: after the forward pass, and at the peak of the backward pass after it.

    `loss` makes one number of the output (its sum unless given). Gradients of parameters and inputs are left as they
    were. Checkpointing shows in the peak of the backward pass, because that is when a segment is computed again. What
    `checkpoint(use_reentrant=False)` computes again is out of hooks' sight and shows in `live_peak_bytes` alone.

    >>> from torch import nn
    >>> layers = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)))
    >>> saved_activations(layers, torch.zeros(2, 8)).count
    8
    """
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    module = model if isinstance(model, torch.nn.Module) else torch.nn.Module()
    parameters = list(module.parameters())
    counter = SavedTensors([*parameters, *module.buffers()])
    with counter.watching(), StepRecorder({}) as live:
        with explained(model, inputs):
            output = model(*inputs)
        value = _sum(output) if loss is None else loss(output)
        after = counter.count, counter.held_bytes
        if backward:
            _backward(value, parameters, inputs)
    return SavedActivations(
        counter.peak_count,
        counter.peak_count_bytes,
        counter.peak_bytes,
        *after,
        live_peak_bytes=live.peak_bytes(),
        backward_ran=backward,
    )


def _backward(value: torch.Tensor, parameters: list[torch.nn.Parameter], inputs: Any) -> None:
    if not value.requires_grad:
        raise UsageError(
            "nothing in this model requires a gradient",
            why="autograd saves tensors only for outputs that depend on something with requires_grad",
            next="pass a model with trainable parameters, outside torch.no_grad()",
        )
    kept = [(leaf, leaf.grad) for leaf in [*parameters, *_tensors(inputs)] if leaf.is_leaf]
    # backward() would add to a gradient in place: what is kept must be out of its reach.
    for leaf, _ in kept:
        leaf.grad = None
    try:
        value.backward()
    finally:
        for leaf, gradient in kept:
            leaf.grad = gradient


def _sum(output: Any) -> torch.Tensor:
    tensors = [tensor for tensor in _tensors(output) if tensor.requires_grad]
    return functools.reduce(torch.add, [tensor.sum() for tensor in tensors]) if tensors else torch.zeros(())


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _place(tensor: torch.Tensor) -> Any:
    # Not data_ptr(): fake tensors have no address.
    return tensor.untyped_storage()._cdata
