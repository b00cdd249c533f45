"""A model made ready to be recorded: on meta, in another dtype, with an optimizer's state, checkpointed by blocks."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from edl_labs.errors import UsageError
from edl_labs.numerics.step_memory import StepRecorder
from edl_labs.predict.cuda_semantics import CudaSemantics
from edl_labs.roofline.operators.recorded_run import tensors

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": functools.partial(torch.optim.SGD, lr=1e-3, foreach=True),
    "momentum": functools.partial(torch.optim.SGD, lr=1e-3, momentum=0.9, foreach=True),
    "adam": functools.partial(torch.optim.Adam, lr=1e-3, foreach=True),
    "adamw": functools.partial(torch.optim.AdamW, lr=1e-3, foreach=True),
    "fused_adamw": functools.partial(torch.optim.AdamW, lr=1e-3, fused=True),
    "loop_adamw": functools.partial(torch.optim.AdamW, lr=1e-3, foreach=False),
    "rmsprop": functools.partial(torch.optim.RMSprop, lr=1e-3, foreach=True),
}

CHECKPOINTS: tuple[bool | str, ...] = (True, "half", "selective")


@contextmanager
def on_meta(model: torch.nn.Module, given: Any) -> Iterator[Any]:
    """Inside, `model` holds meta tensors, and new ones are made there; yields `given` on meta."""
    moved: dict[int, torch.Tensor] = {}

    def onto(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in moved:
            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=False)
            moved[id(tensor)] = made.requires_grad_(tensor.requires_grad)
        return moved[id(tensor)]

    stores: Any = [(one._parameters, one._buffers, vars(one)) for one in model.modules()]
    held: list[tuple[Any, str, torch.Tensor]] = [
        (store, name, tensor)
        for several in stores
        for store in several
        for name, tensor in store.items()
        if isinstance(tensor, torch.Tensor)
    ]
    for store, name, tensor in held:
        store[name] = onto(tensor)
    try:
        with torch.device("meta"):
            yield tree_map_only(torch.Tensor, onto, given)
    finally:
        for store, name, tensor in held:
            store[name] = tensor


def lowered(model: torch.nn.Module, given: Any, dtype: torch.dtype) -> Any:
    """The model's floating-point weights, and what it is given, in `dtype`; `as_fake` puts the originals back."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.dtype.is_floating_point and parameter.dtype.itemsize > 2:
                lower = torch.empty_like(parameter, dtype=dtype)
                module._parameters[name] = torch.nn.Parameter(lower, requires_grad=parameter.requires_grad)
        for name, buffer in module._buffers.items():
            if buffer is not None and buffer.dtype.is_floating_point and buffer.dtype.itemsize > 2:
                module._buffers[name] = buffer.to(dtype)
    return tree_map_only(
        torch.Tensor, lambda one: one.to(dtype) if one.dtype in (torch.float32, torch.float64) else one, given
    )


def made_optimizer(model: torch.nn.Module, wanted: Any) -> torch.optim.Optimizer | None:
    if wanted is None:
        return None
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if isinstance(wanted, torch.optim.Optimizer):
        settings = {k: v for k, v in wanted.defaults.items() if not isinstance(v, torch.Tensor)}
        if settings.get("fused") is None and "foreach" in settings and settings["foreach"] is None:
            settings["foreach"] = True  # what torch chooses for CUDA tensors
        return type(wanted)(trained, **settings)
    make = OPTIMIZERS.get(wanted) if isinstance(wanted, str) else wanted
    if not callable(make):
        raise UsageError(
            f"there is no optimizer {str(wanted)[:40]!r}",
            why="the optimizer's memory traffic is part of the step",
            next=f"use one of {', '.join(OPTIMIZERS)}, or pass an optimizer, or a function that creates one",
        )
    return make(trained)


def make_state(model: torch.nn.Module, update: torch.optim.Optimizer) -> None:
    """The optimizer's state as after a first step, which makes it."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.empty_like(parameter)
    recorder = StepRecorder({}, cuda=True)
    recorder.begin("optimizer")
    with recorder:
        update.step()
    for parameter in model.parameters():
        parameter.grad = None


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Kernels that CUDA has too: no oneDNN layers, and no fused encoder in eval mode."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of oneDNN's TF32, which has no part in this
            stack = torch.backends.mkldnn.flags(enabled=False)
            with stack:
                yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def checkpointed(model: torch.nn.Module, semantics: CudaSemantics, way: bool | str = True) -> Iterator[None]:
    """Each of a stack of equal blocks keeps its input alone and runs again in the backward pass.

    `way` "half" does so with every second block; "selective" keeps attention's results and every second product too.
    UsageError for other words, and for a model without such a stack.
    """
    if way not in CHECKPOINTS:
        raise UsageError(
            f"there is no way of checkpointing called {str(way)[:40]!r}",
            why="the choice of what is recomputed changes both time and memory",
            next=f"use checkpoint=True, or one of {', '.join(repr(one) for one in CHECKPOINTS if one is not True)}",
        )
    blocks = repeated_blocks(model)
    if not blocks:
        raise UsageError(
            f"{type(model).__name__} has no stack of equal blocks that could be checkpointed",
            why="checkpointing keeps only the input of each block, but this model does not show what a block is",
            next="use torch.utils.checkpoint in the model itself, and predict this model",
        )
    blocks = blocks[:: 2 if way == "half" else 1]
    for block in blocks:
        block.forward = functools.partial(_again, semantics, way, block.forward)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward


def _again(semantics: CudaSemantics, way: bool | str, run: Callable[..., Any], *given: Any, **named: Any) -> Any:
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    def as_before(*args: Any, **kwargs: Any) -> Any:
        # What is run again for its gradient runs as it did before, though the backward pass has no modes.
        if semantics.is_on:
            return run(*args, **kwargs)
        with semantics:
            made = run(*args, **kwargs)
        semantics.forget_casts()
        return made

    if way == "selective":
        chosen = functools.partial(create_selective_checkpoint_contexts, _EverySecondProduct())
        options = {"context_fn": chosen, "determinism_check": "none", **named}
        return checkpoint(as_before, *given, use_reentrant=False, preserve_rng_state=False, **options)
    # The reentrant kind saves nothing else, and wants an input that has a gradient.
    reentrant = not named and any(one.requires_grad for one in tensors(given))
    options = {} if reentrant else {"determinism_check": "none", **named}
    return checkpoint(as_before, *given, use_reentrant=reentrant, preserve_rng_state=False, **options)


class _EverySecondProduct:
    """Which results a selective checkpoint keeps: attention's, and of products the first, the third and so on."""

    def __init__(self) -> None:
        self._products = {False: 0, True: 0}

    def __call__(self, ctx: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        from torch.utils.checkpoint import CheckpointPolicy

        keeps = func is torch.ops.edl_labs_predict.attention.default
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self._products[ctx.is_recompute] += 1
            keeps = self._products[ctx.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE


def repeated_blocks(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The children of the outermost lists and sequences that hold two or more modules of one class."""
    for module in model.modules():
        children = list(module.children())
        kinds = Counter(type(child) for child in children)
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and kinds:
            kind, count = kinds.most_common(1)[0]
            if count >= 2 and any(True for child in children if type(child) is kind for _ in child.children()):
                return [child for child in children if type(child) is kind]
    return []
