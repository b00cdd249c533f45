"""One step of a model on fake tensors: every operation that a GPU would be given, and who holds memory when."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest import mock

import torch

from edl_labs.errors import EdlError, UsageError
from edl_labs.numerics.step_memory import StepRecorder, timeline
from edl_labs.predict.cuda_semantics import CudaSemantics, CudnnLayouts
from edl_labs.predict.prepared_models import (
    checkpointed,
    lowered,
    made_optimizer,
    make_state,
    on_meta,
    plain_kernels,
    repeated_blocks,
)
from edl_labs.predict.step_kernels import StepKernel, step_kernels
from edl_labs.roofline.operators.recorded_run import as_fake, tensors
from edl_labs.roofline.operators.recorder import RecordedCall, Recorder

DTYPES = ("fp32", "tf32", "amp_fp16", "amp_bf16", "fp16", "bf16")
_AUTOCAST = {"amp_fp16": torch.float16, "amp_bf16": torch.bfloat16}
_WHOLE = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Moment(NamedTuple):
    """Bytes by category at some place in the step; `operation` counts what was recorded before it."""

    phase: str
    held: dict[str, int]
    operation: int


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
    block_parameters: int = 0
    checkpointed: bool = False
    moments: list[Moment] = field(default_factory=list)

    @property
    def peak_bytes(self) -> int:
        """The largest number of bytes at any moment."""
        return sum(self.held.values())


def record_step(
    model: torch.nn.Module,
    example: Any,
    *,
    dtype: str | None = None,
    optimizer: Any = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    checkpoint: bool | str = False,
) -> StepRecording:
    """One step of `model(*example)`: forward alone where the model is in eval mode, else backward and update too.

    Nothing is computed or allocated, and the model is afterwards as before. UsageError for an unknown dtype or
    optimizer; EdlError, with torch's reason, where the model cannot run on fake tensors.
    """
    if dtype is not None and dtype not in DTYPES:
        short = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32"}
        meant = short.get(str(dtype).removeprefix("torch."))
        amp = f" (or 'amp_{meant}' for autocast)" if meant in ("fp16", "bf16") else ""
        raise UsageError(
            f"there is no dtype {str(dtype)[:40]!r} here",
            why="the dtype of a step decides the type of its weights, or whether it uses autocast or TF32",
            next=f"pass {meant!r}{amp}" if meant else f"pass one of {', '.join(DTYPES)}",
        )
    for place in (on_meta, as_fake):
        # Meta tensors are the quicker; a model that makes tensors on a device of its own needs fake ones.
        try:
            with _quiet():
                return recorded(model, example, dtype, optimizer, loss, place, checkpoint=checkpoint)
        except UsageError:
            raise
        except EdlError:
            if place is as_fake:
                raise
    raise AssertionError("one of two places gives a recording or an error")


@contextmanager
def _quiet() -> Iterator[None]:
    """Torch logs the stack of what fails on fake tensors; the error that is raised says it."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def recorded(
    model: torch.nn.Module, example: Any, dtype: str | None, optimizer: Any, loss: Any, place: Any, *,
    checkpoint: bool | str, whole: Sequence[torch.optim.Optimizer] | None = None,
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
            stack.enter_context(plain_kernels())
            inputs, keywords = stack.enter_context(place(model, (inputs, keywords)))
            for parameter in model.parameters():
                parameter.grad = None
            if dtype in _WHOLE:
                inputs, keywords = lowered(model, (inputs, keywords), _WHOLE[dtype])
            semantics = CudaSemantics(_AUTOCAST.get(dtype or ""))
            if checkpoint:
                stack.enter_context(checkpointed(model, semantics, checkpoint))
            update = made_optimizer(model, optimizer) if trains else None
            found.there(model.parameters(), "parameters")
            found.there(model.buffers(), "parameters")
            found.there(tensors((inputs, keywords)), "inputs")
            if update is not None:
                make_state(model, update)
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
    recording = _recording(model, dtype, trains, made, found, update is not None, sizes, _is_empty((inputs, keywords)))
    blocks = repeated_blocks(model)
    recording.blocks, recording.checkpointed = max(1, len(blocks)), bool(checkpoint)
    recording.block_parameters = max((sum(p.numel() for p in one.parameters()) for one in blocks), default=0)
    return recording


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
    model: Any,
    dtype: str | None,
    trains: bool,
    made: list[Any],
    found: StepRecorder,
    updates: bool,
    sizes: Any,
    is_empty: bool,
) -> StepRecording:
    kernels = step_kernels(made, tf32=dtype == "tf32")
    if not any(kernel.moved_bytes or kernel.flops for kernel in kernels) or is_empty:
        raise EdlError(
            f"{type(model).__name__} does no work on the GPU for this example",
            why="it has no operation that computes or moves values, or its tensors are empty",
            next="pass a model that does some work, and an example with at least one sample",
        )
    history = timeline(found, 0, len(found.operations))
    at, held = max(history, key=lambda state: state[1].total())
    phase = _phase(found, at)
    modules: Counter[str] = Counter()
    for one in found.held:
        if one.category in ("activations", "temporaries") and one.born <= at and (one.died is None or one.died > at):
            modules[one.module] += one.nbytes
    return StepRecording(
        type(model).__name__,
        dtype or "as given",
        trains,
        kernels,
        sizes["parameters"],
        sizes["parameter_bytes"],
        {name: size for name, size in held.items() if size},
        phase,
        tuple(modules.most_common(3)),
        updates,
        notes=_notes(model),
        gradients=sizes["gradients"],
        moments=_moments(found, history),
    )


def _is_empty(given: Any) -> bool:
    return any(one.numel() == 0 for one in tensors(given))


def _notes(model: torch.nn.Module) -> list[str]:
    """What a reader has to know of this model beside the figures."""
    loops = sorted({type(one).__name__ for one in model.modules() if isinstance(one, torch.nn.RNNBase)})
    text = "predicted token by token, one operation at a time; cuDNN fuses them, and can be ten times as fast"
    return [f"{', '.join(loops)}: {text}"] if loops else []


def _phase(found: StepRecorder, at: int) -> str:
    return next((name for begin, name in reversed(found.marks) if begin <= at), "forward")


def _moments(found: StepRecorder, history: list[tuple[int, Counter[str]]]) -> list[Moment]:
    """Of each phase where most is held, and where most of what no GPU shares with another: either may be the peak."""
    best: dict[tuple[str, bool], tuple[int, int, Counter[str]]] = {}
    for at, held in history:
        phase, own = _phase(found, at), held["activations"] + held["temporaries"]
        for whole, size in ((True, held.total()), (False, own)):
            if size > best.get((phase, whole), (-1,))[0]:
                best[phase, whole] = size, at, held
    return [
        Moment(phase, {name: size for name, size in held.items() if size}, at)
        for (phase, _), (_, at, held) in best.items()
    ]


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example, dict):
        return (), dict(example)
    return (tuple(example) if isinstance(example, (tuple, list)) else (example,)), {}


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
            f"{name} reads tensor values while it runs, but a prediction has no tensor values",
            why=f"{kind}: {text}",
            next="predict only the part without `.item()`, `if x > 0` or `nonzero`, or use a fixed shape there",
        )
    if "numpy" in text:
        return EdlError(
            f"{name} calls code outside torch while it runs, so it cannot be predicted",
            why=f"{kind}: {text}",
            next="predict only the part before or after this call, or use torch's own functions instead",
        )
    return EdlError(
        f"{name} cannot be run on this example",
        why=f"{kind}: {text}",
        next="pass an example that model(*example) accepts (a dict for keyword arguments); try model(*example) "
        "yourself first",
    )
