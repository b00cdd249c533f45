"""One step of a model on fake tensors: every operation that a GPU would be given, and who holds memory when."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.utils._pytree import tree_map_only

from edl_labs.errors import EdlError, UsageError
from edl_labs.numerics.step_memory import StepRecorder, timeline
from edl_labs.predict.cuda_semantics import CudaSemantics, CudnnLayouts
from edl_labs.predict.step_kernels import StepKernel, step_kernels
from edl_labs.roofline.operators.recorded_run import as_fake, tensors
from edl_labs.roofline.operators.recorder import RecordedCall, Recorder

DTYPES = ("fp32", "tf32", "amp_fp16", "amp_bf16", "fp16", "bf16")
_AUTOCAST = {"amp_fp16": torch.float16, "amp_bf16": torch.bfloat16}
_WHOLE = {"fp16": torch.float16, "bf16": torch.bfloat16}
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": functools.partial(torch.optim.SGD, lr=1e-3, foreach=True),
    "momentum": functools.partial(torch.optim.SGD, lr=1e-3, momentum=0.9, foreach=True),
    "adam": functools.partial(torch.optim.Adam, lr=1e-3, foreach=True),
    "adamw": functools.partial(torch.optim.AdamW, lr=1e-3, foreach=True),
    "fused_adamw": functools.partial(torch.optim.AdamW, lr=1e-3, fused=True),
    "loop_adamw": functools.partial(torch.optim.AdamW, lr=1e-3, foreach=False),
    "rmsprop": functools.partial(torch.optim.RMSprop, lr=1e-3, foreach=True),
}


@dataclass
class StepRecording:
    """What one step runs: its kernels, its memory over time, and what of the model matters for many GPUs."""

    name: str
    dtype: str
    is_training: bool
    kernels: list[StepKernel]
    parameters: int
    parameter_bytes: int
    held: dict[str, int]
    peak_phase: str
    owners: tuple[tuple[str, int], ...]
    has_optimizer: bool
    notes: list[str] = field(default_factory=list)
    gradients: list[tuple[int, int]] = field(default_factory=list)
    blocks: int = 1
    checkpointed: bool = False

    @property
    def peak_bytes(self) -> int:
        """The most bytes at any moment."""
        return sum(self.held.values())


def record_step(
    model: torch.nn.Module,
    example: Any,
    *,
    dtype: str | None = None,
    optimizer: Any = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    checkpoint: bool = False,
) -> StepRecording:
    """One step of `model(*example)`: forward alone where the model is in eval mode, else backward and update too.

    Nothing is computed or allocated, and the model is afterwards as before. UsageError for an unknown dtype or
    optimizer; EdlError, with torch's reason, where the model cannot run on fake tensors.
    """
    if dtype is not None and dtype not in DTYPES:
        raise UsageError(
            f"no dtype is called {str(dtype)[:40]!r} here",
            why="a step's dtype says how products are done: weights, autocast or TF32",
            next=f"say one of {', '.join(DTYPES)}",
        )
    for place in (on_meta, as_fake):
        # Meta tensors are the quicker; a model that makes tensors on a device of its own needs fake ones.
        try:
            return recorded(model, example, dtype, optimizer, loss, place, checkpoint=checkpoint)
        except UsageError:
            raise
        except EdlError:
            if place is as_fake:
                raise
    raise AssertionError("one of two places gives a recording or an error")


def recorded(
    model: torch.nn.Module, example: Any, dtype: str | None, optimizer: Any, loss: Any, place: Any, *,
    checkpoint: bool, whole: Sequence[torch.optim.Optimizer] | None = None,
) -> StepRecording:  # fmt: skip
    inputs, keywords = _arguments(example)
    trains = whole is None and model.training and any(parameter.requires_grad for parameter in model.parameters())
    found = StepRecorder({module: name for name, module in model.named_modules()}, cuda=True)
    calls = Recorder({module: name for name, module in model.named_modules()})
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    made: list[tuple[str, RecordedCall]] = []
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(devices=()))
            stack.enter_context(_plain_kernels())
            inputs, keywords = stack.enter_context(place(model, (inputs, keywords)))
            for parameter in model.parameters():
                parameter.grad = None
            if dtype in _WHOLE:
                inputs, keywords = _lower(model, (inputs, keywords), _WHOLE[dtype])
            semantics = CudaSemantics(_AUTOCAST.get(dtype or ""))
            if checkpoint:
                stack.enter_context(_checkpointed(model, semantics))
            update = _optimizer(model, optimizer) if trains else None
            found.there(model.parameters(), "parameters")
            found.there(model.buffers(), "parameters")
            found.there(tensors((inputs, keywords)), "inputs")
            if update is not None:
                _make_state(model, update)
                found.there([t for one in update.state.values() for t in tensors(one)], "optimizer")
            with torch.enable_grad() if trains or whole is not None else torch.no_grad():
                sizes = _run(model, inputs, keywords, found, calls, semantics, update, loss, made, trains, whole or ())
    except EdlError:
        raise
    except Exception as error:
        raise _explained(model, error) from error
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
    recording = _recording(model, dtype, trains, made, found, update is not None, sizes)
    recording.blocks, recording.checkpointed = max(1, len(repeated_blocks(model))), checkpoint
    return recording


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


def _run(
    model: Any, inputs: Any, keywords: Any, found: StepRecorder, calls: Recorder, semantics: CudaSemantics,
    update: Any, loss: Any, made: list[tuple[str, RecordedCall]], trains: bool, warm: Sequence[torch.optim.Optimizer],
) -> dict[str, Any]:  # fmt: skip
    def take(phase: str) -> None:
        made.extend((phase, call) for call in calls.calls)
        calls.calls.clear()

    sizes: dict[str, Any] = {"gradients": []}
    if warm:
        # The first step makes the optimizer's state, the second is like all others.
        with CudnnLayouts(), semantics:
            model(*inputs, **keywords)
        found.there([t for one in warm for held in one.state.values() for t in tensors(held)], "optimizer")
    with CudnnLayouts(), found, calls:
        found.begin("forward")
        with semantics, _phases_marked(found, calls, take):
            output = model(*inputs, **keywords)
            value = (loss or _scalar)(output) if trains else None
            del output
            found.forward_is_over()
            semantics.forget_casts()
        take("optimizer" if found.phase == "optimizer" else "forward")
        sizes["parameters"] = sum(parameter.numel() for parameter in model.parameters())
        sizes["parameter_bytes"] = sum(p.numel() * p.element_size() for p in model.parameters())
        if not trains or value is None:
            return sizes
        found.begin("backward")
        calls.is_backward = True
        hooks = [
            p.register_post_accumulate_grad_hook(
                lambda p: sizes["gradients"].append((len(calls.calls), p.numel() * p.element_size()))
            )
            for p in model.parameters()
            if p.requires_grad
        ]
        value.backward()
        semantics.forget_casts()
        for hook in hooks:
            hook.remove()
        take("backward")
        found.name([p.grad for p in model.parameters() if p.grad is not None], "gradients")
        found.begin("optimizer")
        calls.is_backward = False
        if update is not None:
            update.step()
        take("optimizer")
        found.begin("zero_grad")
        for parameter in model.parameters():
            parameter.grad = None
    return sizes


@contextmanager
def _phases_marked(found: StepRecorder, calls: Recorder, take: Callable[[str], None]) -> Iterator[None]:
    """Where the model itself goes back, what comes before, in and after that is forward, backward and update."""
    original = torch.autograd.backward

    def marked(*args: Any, **kwargs: Any) -> None:
        found.forward_is_over()
        take("forward")
        found.begin("backward")
        calls.is_backward = True
        original(*args, **kwargs)
        take("backward")
        calls.is_backward = False
        found.begin("optimizer")

    with mock.patch.object(torch.autograd, "backward", marked):
        yield


def _recording(
    model: Any, dtype: str | None, trains: bool, made: list[Any], found: StepRecorder, updates: bool, sizes: Any
) -> StepRecording:
    history = timeline(found, 0, len(found.operations))
    at, held = max(history, key=lambda state: state[1].total())
    phase = [name for begin, name in found.marks if begin <= at][-1] if found.marks else "forward"
    modules: Counter[str] = Counter()
    for one in found.held:
        if one.category in ("activations", "temporaries") and one.born <= at and (one.died is None or one.died > at):
            modules[one.module] += one.nbytes
    return StepRecording(
        type(model).__name__,
        dtype or "as given",
        trains,
        step_kernels(made, tf32=dtype == "tf32"),
        sizes["parameters"],
        sizes["parameter_bytes"],
        {name: size for name, size in held.items() if size},
        phase,
        tuple(modules.most_common(3)),
        updates,
        gradients=sizes["gradients"],
    )


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example, dict):
        return (), dict(example)
    return (tuple(example) if isinstance(example, (tuple, list)) else (example,)), {}


def _lower(model: torch.nn.Module, given: Any, dtype: torch.dtype) -> Any:
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


def _optimizer(model: torch.nn.Module, wanted: Any) -> torch.optim.Optimizer | None:
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
            f"no optimizer is called {str(wanted)[:40]!r}",
            why="its traffic is part of the step",
            next=f"say one of {', '.join(OPTIMIZERS)}, give an optimizer, or a function that makes one",
        )
    return make(trained)


def _make_state(model: torch.nn.Module, update: torch.optim.Optimizer) -> None:
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
def _plain_kernels() -> Iterator[None]:
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
def _checkpointed(model: torch.nn.Module, semantics: CudaSemantics) -> Iterator[None]:
    """Each of a stack of equal blocks keeps its input alone and runs again in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    blocks = repeated_blocks(model)
    if not blocks:
        raise UsageError(
            f"{type(model).__name__} has no stack of equal blocks to checkpoint",
            why="checkpointing keeps the input of each block, and nothing here says what a block is",
            next="use torch.utils.checkpoint in the model itself, and predict that",
        )

    def again(run: Callable[..., Any], *given: Any, **named: Any) -> Any:
        # The reentrant kind saves nothing else, and wants an input that has a gradient.
        def as_before(*args: Any, **kwargs: Any) -> Any:
            # What is run again for its gradient runs as it did before, though the backward pass has no modes.
            if semantics.is_on:
                return run(*args, **kwargs)
            with semantics:
                made = run(*args, **kwargs)
            semantics.forget_casts()
            return made

        reentrant = not named and any(one.requires_grad for one in tensors(given))
        options = {} if reentrant else {"determinism_check": "none", **named}
        return checkpoint(as_before, *given, use_reentrant=reentrant, preserve_rng_state=False, **options)

    for block in blocks:
        block.forward = functools.partial(again, block.forward)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward


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


def _scalar(output: Any) -> torch.Tensor:
    parts = [tensor for tensor in tensors(output) if tensor.requires_grad]
    if len(parts) == 1 and parts[0].dim() == 0:
        return parts[0]
    return functools.reduce(torch.add, [part.sum() for part in parts])


def _explained(model: Any, error: Exception) -> EdlError:
    text = (str(error).strip().splitlines() or [""])[0][:200]
    name, kind = type(model).__name__, type(error).__name__
    values = any(word in f"{kind} {text}" for word in ("DataDependent", "GuardOn", "_local_scalar_dense", "nonzero"))
    if values:
        return EdlError(
            f"{name} looks at values while it runs, which a prediction does not have",
            why=f"{kind}: {text}",
            next="predict the part without `.item()`, `if x > 0` or `nonzero`, or give it a fixed shape there",
        )
    return EdlError(
        f"{name} cannot be run on this example",
        why=f"{kind}: {text}",
        next="give an example that model(*example) takes (a dict for keywords); try model(*example) itself first",
    )
