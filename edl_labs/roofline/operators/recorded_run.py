"""Runs a model under the recorder and leaves it as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_map_only

from edl_labs.errors import EdlError
from edl_labs.roofline.operators.contractions import stored_bytes
from edl_labs.roofline.operators.recorder import RecordedCall, Recorder


def record(
    model: Any, inputs: tuple[Any, ...], keywords: Mapping[str, Any], *, modules: dict[Any, str], backward: bool
) -> tuple[list[RecordedCall], int]:
    """The calls of one forward and, if possible, one `backward` pass, and the bytes that cross the whole run's border.

    A module on meta runs on a fake CPU, whose kernels are those of a real one, autocast included.
    """
    recorder = Recorder(modules)
    given = inputs, keywords
    place = as_fake(model, given) if _is_on_meta(model, given) else nullcontext(given)
    with explained(model, inputs), place as given, _as_before(model, given):
        inputs, keywords = given
        with nullcontext() if backward else torch.no_grad(), recorder:
            out = model(*inputs, **keywords)
        results = [tensor for tensor in tensors(out) if tensor.requires_grad]
        gradients = [torch.ones_like(tensor) for tensor in results]
        crossing = _unique_bytes([*tensors(inputs), *tensors(dict(keywords)), *_held(model), *tensors(out)])
        if backward and results:
            recorder.is_backward = True
            with recorder:
                torch.autograd.backward(results, gradients)
            made = [parameter.grad for parameter in _parameters(model) if parameter.grad is not None]
            crossing += _unique_bytes([*made, *gradients])
    return recorder.calls, crossing


@contextmanager
def as_fake(model: torch.nn.Module, given: Any, *, device: str = "cpu") -> Iterator[Any]:
    """Inside, `model` holds fake tensors on `device` and FakeTensorMode is on; yields `given` as fake tensors, too.

    A fake tensor has shape, dtype and device and no data: kernels and autocast's casts are chosen as on that device,
    and nothing is computed. Afterwards the model is as before.
    """
    with FakeTensorMode(allow_non_fake_inputs=True):
        fakes: dict[int, torch.Tensor] = {}

        def fake(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in fakes:
                made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
                if isinstance(tensor, torch.nn.Parameter):
                    made = torch.nn.Parameter(made, requires_grad=False)
                fakes[id(tensor)] = made.requires_grad_(tensor.requires_grad)
            return fakes[id(tensor)]

        held = [(store, name, tensor) for module in model.modules() for store, name, tensor in _places(module)]
        for store, name, tensor in held:
            store[name] = fake(tensor)
        try:
            yield tree_map_only(torch.Tensor, fake, given)
        finally:
            for store, name, tensor in held:
                store[name] = tensor


def _places(module: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str, torch.Tensor]]:
    """Where a module holds tensors: parameters, buffers, and plain attributes on meta, which `.to()` would leave."""
    for store in (module._parameters, module._buffers, vars(module)):
        for name, value in store.items():
            if isinstance(value, torch.Tensor) and (value.is_meta or store is not vars(module)):
                yield store, name, value


def _is_on_meta(model: Any, given: Any) -> bool:
    """Whether a module and all that it is given lie on meta, not on a fake device."""
    found = [*_held(model), *tensors(given)]
    return (
        isinstance(model, torch.nn.Module)
        and bool(found)
        and all(tensor.is_meta and not isinstance(tensor, FakeTensor) for tensor in found)
    )


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested tuples, lists, dicts and dataclasses (as many libraries return)."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors(getattr(value, name))


def _held(model: Any) -> list[torch.Tensor]:
    return [*_parameters(model), *model.buffers()] if isinstance(model, torch.nn.Module) else []


def _parameters(model: Any) -> list[torch.nn.Parameter]:
    return list(model.parameters()) if isinstance(model, torch.nn.Module) else []


def _unique_bytes(found: list[torch.Tensor]) -> int:
    return sum({id(tensor): stored_bytes(tensor) for tensor in found}.values())


@contextmanager
def _as_before(model: Any, given: Any) -> Iterator[None]:
    """Buffers, gradients (those of leaves among the inputs too) and random numbers are afterwards as before."""
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    # By name as well as by value: a forward pass may put another tensor in a buffer's place. A TorchScript module has
    # no dict of buffers to put back.
    named = [(one, dict(one._buffers)) for one in modules if not isinstance(one, torch.jit.ScriptModule)]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()] if modules else []
    leaves = [*_parameters(model), *(tensor for tensor in tensors(given) if tensor.is_leaf)]
    gradients = [(leaf, leaf.grad) for leaf in leaves]
    for leaf, _ in gradients:
        leaf.grad = None
    real = [parameter for parameter in _parameters(model) if not isinstance(parameter, FakeTensor)]
    devices = sorted({parameter.device.index or 0 for parameter in real if parameter.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        with torch.no_grad():
            for buffer, saved in buffers:
                buffer.copy_(saved)
        for module, kept in named:
            module._buffers.clear()
            module._buffers.update(kept)
        for leaf, gradient in gradients:
            leaf.grad = gradient


@contextmanager
def explained(model: Any, inputs: tuple[Any, ...]) -> Iterator[None]:
    """Inside, whatever a model raises becomes an EdlError with what to check first."""
    try:
        yield
    except (EdlError, KeyboardInterrupt):
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise EdlError(
            f"{_name(model)} cannot run on these inputs.",
            why=f"{type(error).__name__}: {first[:200]}",
            next=_next(model, inputs),
        ) from error


def _name(model: Any) -> str:
    if isinstance(model, torch.nn.Module):
        return type(model).__name__
    return str(getattr(model, "__name__", type(model).__name__))


def _next(model: Any, inputs: tuple[Any, ...]) -> str:
    kinds = {tensor.device.type for tensor in [*_held(model), *tensors(inputs)]}
    if "meta" in kinds and len(kinds) == 1:
        return "This model needs values, which meta tensors lack: run it on the CPU, with a small batch."
    if len(kinds) > 1:
        return f"Move model and inputs to one device; they are on {', '.join(sorted(kinds))}."
    return "Pass inputs that model(*inputs) accepts."
