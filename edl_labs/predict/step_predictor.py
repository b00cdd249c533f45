"""`predict`: a step of a model on a machine that one does not have, from the model alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from edl_labs.arguments import checked_arguments, require_positive
from edl_labs.errors import UsageError
from edl_labs.predict.compiled_kernels import fused, remade_bytes
from edl_labs.predict.efficiencies import Efficiencies
from edl_labs.predict.forecast import ExpensiveOperator, Prediction, Source
from edl_labs.predict.kernel_times import KernelTimer
from edl_labs.predict.machine_card import MachineCard
from edl_labs.predict.many_gpus import ParallelLayout, sharded, spread_held, spread_times
from edl_labs.predict.recorded_function import record_function
from edl_labs.predict.recorded_step import StepRecording, record_step
from edl_labs.predict.step_kernels import StepKernel
from edl_labs.predict.step_times import LIMITERS, PlayedStep, play
from edl_labs.roofline.operators.recorded_run import tensors

_SHOWN = 10  # operators in the table: the issue asks for ten
_Z80 = 1.2816  # standard deviations that hold four cases of five of a normal law
# What torch gives cuBLAS to work in: ":4096:2:16:8" in KiB, and 32 MiB from Hopper on (its CUDABlas.cpp).
_WORKSPACE_BYTES = (8_519_680, 2**25)
# Relative doubt of a second of each kind of work, and of all seconds of a step together: they make residuals of
# calibration rows whose GPU was left out of the fit likely, scaled until four of five of those rows lie inside
# (`benchmarks/step_prediction.py --doubts`).
_DOUBT = {
    "product": 0.088, "convolution": 0.109, "attention": 0.22, "bytes": 0.178, "launch": 0.228, "communication": 0.354
}  # fmt: skip
_COMMON_DOUBT = 0.071  # as above


@dataclass(frozen=True)
class _Asked:
    """All that `predict` was asked, so that `what_if` can ask again with something changed."""

    model: Any
    example: Any
    machine: Any
    dtype: str | None
    compiled: bool
    optimizer: Any
    cluster: Any
    loss: Callable[[Any], torch.Tensor] | None
    checkpoint: bool | str
    accumulate: int
    graphed: bool
    efficiencies: Efficiencies


@checked_arguments(
    step_or_model="Pass an nn.Module, or a function that runs one step, and an example of its input.",
    dtype="Pass dtype='amp_bf16', or one of fp32, tf32, amp_fp16, fp16 and bf16.",
)
def predict_step(
    step_or_model: Callable[..., Any],
    example: Any,
    machine: Any = "H100",
    *,
    dtype: str | None = None,
    compiled: bool = False,
    optimizer: Any = None,
    cluster: Any = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    checkpoint: bool | str = False,
    accumulate: int = 1,
    graphed: bool = False,
    efficiencies: Efficiencies | None = None,
) -> Prediction:
    """How long a step takes on `machine`, whether it fits, and what limits it. No GPU, and no memory for the model.

    A model in train mode does forward, backward and (with `optimizer`) update; in eval mode forward alone. Its output
    is summed for a loss unless `loss` makes one number of it. A function is a whole step: models and optimizers that it
    uses are found in its closure and globals. `example` is a tensor, a tuple of arguments or a dict of keywords, on any
    device, meta included. `dtype` is fp32, tf32, amp_fp16, amp_bf16, fp16 or bf16 (as the model is unless given);
    `optimizer` a name ('momentum', 'adamw', 'fused_adamw', …), an optimizer, or a function of parameters. `cluster` is
    a number of GPUs, or {"gpus": 16, "tp": 8, "zero": 1}. `checkpoint` runs each of a stack of equal blocks again in
    the backward pass ("half": every second one; "selective": all but attention and every second product);
    `accumulate` runs the passes so many times an update; `graphed` replays a CUDA graph.

    UsageError for an unknown GPU, dtype or optimizer; EdlError where the model cannot be run on the example.

    >>> import torch
    >>> layers = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU()).eval()
    >>> found = predict_step(layers, torch.empty(8192, 4096, device="meta"), "A100-80GB", dtype="bf16")
    >>> found.limiter, found.fits, found.low_s < found.step_s < found.high_s
    ('compute', 'yes', True)
    """
    require_positive(accumulate=accumulate)
    asked = _Asked(
        getattr(step_or_model, "_orig_mod", step_or_model), example, machine, dtype,
        compiled or hasattr(step_or_model, "_orig_mod"), optimizer, cluster, loss, checkpoint, accumulate, graphed,
        efficiencies or Efficiencies(),
    )  # fmt: skip
    MachineCard.of(machine)  # an unknown GPU is said before anything runs
    return predicted(asked, _record(asked))


def _record(asked: _Asked) -> StepRecording:
    if isinstance(asked.model, torch.nn.Module):
        return record_step(
            asked.model, asked.example, dtype=asked.dtype, optimizer=asked.optimizer, loss=asked.loss,
            checkpoint=asked.checkpoint,
        )  # fmt: skip
    return record_function(asked.model, asked.example, dtype=asked.dtype)


def predicted(asked: _Asked, recording: StepRecording) -> Prediction:
    """The prediction of a recorded step; recordings serve several machines."""
    card = MachineCard.of(asked.machine)
    spread = ParallelLayout.of(asked.cluster) if asked.cluster is not None else ParallelLayout(1, dp=1)
    base = recording.kernels
    kernels = sharded(fused(base) if asked.compiled else base, spread)
    timer = KernelTimer(card, asked.efficiencies, compiled=asked.compiled)
    played = play(kernels, timer, graphed=asked.graphed, accumulate=asked.accumulate)
    step_s, limits = played.total_s, dict(played.limits)
    if spread.gpus > 1:
        step_s = _spread(asked, recording, card, spread, played, kernels, limits)
    remade = remade_bytes(base, kernels) if asked.compiled and spread.tp == 1 else 0.0
    phase, held = _held(recording, spread, card, remade)
    flops = sum(one.flops * (1 if one.phase == "optimizer" else asked.accumulate) for one in kernels)
    useful = flops
    if recording.checkpointed:
        useful = 3 * asked.accumulate * sum(one.flops for one in kernels if one.phase == "forward")
    peak = _main_peak(card, kernels)
    works = {name: value * (step_s - limits["communication"]) / played.total_s for name, value in played.works.items()}
    works["communication"] = limits["communication"]
    low, high = interval(step_s, works)
    unknown = tuple(dict.fromkeys(one.name for one in kernels if one.unknown))
    if unknown:
        high = math.inf  # nothing bounds what cannot be priced
    return Prediction(
        model=recording.name, machine=card.key, dtype=recording.dtype, compiled=asked.compiled,
        is_training=recording.is_training, gpus=spread.gpus, replicas=spread.dp,
        accumulate=asked.accumulate, batch=_batch(asked), step_s=step_s, low_s=low, high_s=high,
        host_s=played.host_s, peak_bytes=sum(held.values()), memory_bytes=card.memory_bytes, held=held,
        peak_phase=phase, peak_module=recording.owners[0][0] if recording.owners else "", flops=flops,
        mfu=useful / (step_s * peak) if step_s else 0.0,
        roofline_efficiency=_roofline_s(card, kernels, asked.accumulate) / step_s if step_s else 0.0,
        limits=limits, works=works, phases=dict(played.phases),
        most_expensive=_most_expensive(kernels, played, asked.accumulate, step_s),
        unknown=unknown, measured=card.measured,
        assumed=_assumed(card), notes=tuple(recording.notes), price_per_hour=card.price_per_hour,
        source=Source(lambda changes: _again(asked, recording, changes), _spans(kernels, played, timer, asked)),
    )  # fmt: skip


def _held(
    recording: StepRecording, spread: ParallelLayout, card: MachineCard, remade: float
) -> tuple[str, dict[str, int]]:
    """(phase, bytes by category) of one GPU at its peak; a compiled step does not save what it makes again."""
    most = max((one.held.get("activations", 0) for one in recording.moments), default=0)
    kept = max(0.0, 1 - remade / most) if most else 1.0
    found = []
    for moment in recording.moments:
        held = spread_held(recording, spread, moment) if spread.gpus > 1 else dict(moment.held)
        if "activations" in held:
            held["activations"] = int(held["activations"] * kept)
        found.append((moment.phase, held))
    phase, held = max(found, key=lambda one: sum(one[1].values()))
    if any(one.product is not None for one in recording.kernels):
        held["workspaces"] = _WORKSPACE_BYTES[card.family in ("hopper", "blackwell")]
    return phase, {name: size for name, size in held.items() if size}


def _spread(
    asked: _Asked, recording: StepRecording, card: MachineCard, spread: ParallelLayout, played: PlayedStep,
    kernels: Sequence[StepKernel], limits: dict[str, float],
) -> float:  # fmt: skip
    norms = [one.writes[0][1] for one in kernels if one.kind == "norm" and one.writes and one.phase == "forward"]
    times = spread_times(
        played, recording, card, spread, accumulate=asked.accumulate, hidden_bytes=max(norms, default=0.0)
    )
    own = sum(limits[name] for name in LIMITERS)
    limits["communication"] += times.waited_s
    scale = max(0.0, times.total_s - times.waited_s) / own if own else 0.0
    for name in LIMITERS[:3]:
        limits[name] *= scale
    return times.total_s


def interval(step_s: float, works: Mapping[str, float]) -> tuple[float, float]:
    """(low, high) seconds that hold the step in four cases of five, from the seconds of each kind of work."""
    factor = math.exp(_Z80 * doubt(step_s, works, _DOUBT, _COMMON_DOUBT))
    return step_s / factor, step_s * factor


def doubt(step_s: float, works: Mapping[str, float], each: Mapping[str, float], common: float) -> float:
    """Standard deviation of a step's logarithm: doubts of kinds of work do not go together, `common` is of all."""
    shares = ((name, value / step_s) for name, value in works.items()) if step_s else ()
    return math.sqrt(sum((share * each[name]) ** 2 for name, share in shares) + common**2)


def _again(asked: _Asked, recording: StepRecording, changes: dict[str, Any]) -> Prediction:
    batch = changes.pop("batch", None)
    if batch is not None:
        changes["example"] = _with_batch(asked, batch)
    same = not set(changes) & {"example", "dtype", "checkpoint"}
    changed = replace(asked, **changes)
    return predicted(changed, recording if same else _record(changed))


def _with_batch(asked: _Asked, batch: int) -> Any:
    old = _batch(asked)
    if not isinstance(batch, int) or batch < 1 or old is None:
        raise UsageError(
            f"the batch size cannot become {batch!r}",
            why="it must be a whole number of at least 1, and the batch must be the first dimension of the tensors",
            next="pass such a number, or an example whose tensors have the batch as their first dimension",
        )

    def resized(one: torch.Tensor) -> torch.Tensor:
        if not one.dim() or one.shape[0] != old:
            return one
        made = torch.empty((batch, *one.shape[1:]), dtype=one.dtype, device="meta")
        last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(one.dim())
        if last is not None and one.is_contiguous(memory_format=last) and not one.is_contiguous():
            return made.to(memory_format=last)
        return made

    return tree_map_only(torch.Tensor, resized, asked.example)


def _batch(asked: _Asked) -> int | None:
    first = next((one for one in tensors(asked.example) if one.dim()), None)
    return None if first is None else int(first.shape[0])


def _main_peak(card: MachineCard, kernels: Sequence[StepKernel]) -> float:
    flops: dict[str, float] = defaultdict(float)
    for one in kernels:
        flops[one.dtype] += one.flops
    return card.peak(max(flops, key=lambda name: flops[name], default="fp32"))[1]


def _roofline_s(card: MachineCard, kernels: Sequence[StepKernel], accumulate: int) -> float:
    """Seconds by the datasheet's roofline, kernel by kernel."""
    total = 0.0
    for one in kernels:
        compute = one.flops / card.peak(one.dtype)[1] if one.flops else 0.0
        total += max(compute, one.moved_bytes / card.memory_byte_per_s) * (
            1 if one.phase == "optimizer" else accumulate
        )
    return total


def _most_expensive(
    kernels: Sequence[StepKernel], played: PlayedStep, accumulate: int, step_s: float
) -> tuple[ExpensiveOperator, ...]:
    found: dict[tuple[str, str, str, str], list[Any]] = {}
    for one, time in zip(kernels, played.times, strict=True):
        key = (one.name, one.phase, one.dtype, time.limiter)
        entry = found.setdefault(key, [0, 0.0, 0.0, "", one.module])
        seconds = time.seconds * (1 if one.phase == "optimizer" else accumulate)
        entry[0] += 1
        entry[1] += seconds
        if seconds > entry[2]:
            entry[2:] = [seconds, time.reason, one.module]
    rows = [
        ExpensiveOperator(name, module, phase, dtype, calls, total, total / step_s if step_s else 0.0, limiter, reason)
        for (name, phase, dtype, limiter), (calls, total, _, reason, module) in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.seconds)[:_SHOWN])


def _assumed(card: MachineCard) -> tuple[str, ...]:
    known = " ".join(card.measured)
    figures = {
        "products": "rates of products",
        "stream": "memory bandwidth",
        "kernel floor": "the start-up time of kernels",
    }
    figures["host"] = "the host's time per operation"
    return tuple(text for word, text in figures.items() if word not in known)


def _spans(
    kernels: Sequence[StepKernel], played: PlayedStep, timer: KernelTimer, asked: _Asked
) -> tuple[tuple[str, float, float], ...]:
    op_s = played.host_s / max(1, len(kernels))
    return tuple((one.name, time.seconds, op_s) for one, time in zip(kernels, played.times, strict=True))
