"""`memory_plan`: the peak of a training step by category and moment, and how to keep it within a budget."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from edl_labs.arguments import checked_arguments, require_positive
from edl_labs.errors import EdlError, UsageError
from edl_labs.numerics.step_memory import CATEGORIES, StepRecorder, StorageRecord, run_steps, timeline
from edl_labs.presenters import Plottable
from edl_labs.roofline import Machine, bound, count
from edl_labs.roofline.operators.recorded_run import as_fake, tensors
from edl_labs.units import byte_count
from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory import Placement, Tape, TapeLayer, as_chain, best_placement

# State per parameter is theirs: none, or two averages.
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer] | None] = {
    "none": None,
    "sgd": functools.partial(torch.optim.SGD, lr=1e-3),
    "momentum": functools.partial(torch.optim.SGD, lr=1e-3, momentum=0.9),
    "adam": functools.partial(torch.optim.Adam, lr=1e-3),
}
PINNED_BYTE_PER_S = 25e9  # copies over PCIe 4.0 ×16 from pinned memory, as lab01 measures them


@dataclass(frozen=True, repr=False)
class MemoryMoment(Value):
    """What is held after one operation of the step: its name, the phase, and bytes by category."""

    operation: str
    phase: str
    held_bytes: Mapping[str, int]

    @property
    def total_bytes(self) -> int:
        """The bytes of all categories together."""
        return sum(self.held_bytes.values())


@dataclass(frozen=True, repr=False)
class MemoryPlan(Value, Plottable):
    """What a training step holds when, and what to do under a budget.

    `moments` follow the second step, in which the optimizer's state is there. `owners` are the modules that hold most
    activations at the peak. `placement` says which layers of `tape` to keep, recompute or offload so that the peak of
    the passes stays within `budget_bytes`; None without a budget, or where no placement does (`advice` says so).
    """

    DERIVED = ("peak_bytes",)
    ROWS = "moments"

    model: str
    device: str
    peak: MemoryMoment
    owners: tuple[tuple[str, int], ...]
    moments: tuple[MemoryMoment, ...]
    tape: Tape
    budget_bytes: int | None = None
    placement: Placement | None = None
    advice: str = ""
    notes: tuple[str, ...] = ()

    @property
    def peak_bytes(self) -> int:
        """The largest number of bytes at any moment of the step."""
        return self.peak.total_bytes

    def __str__(self) -> str:
        most = sorted(self.peak.held_bytes.items(), key=lambda item: -item[1])[:3]
        parts = ", ".join(f"{name} {byte_count(size)}" for name, size in most if size)
        text = f"{self.model}: {byte_count(self.peak_bytes)} at the peak, which is in {self.peak.phase} ({parts})"
        return "; ".join(filter(None, (text, self.advice, *self.notes)))


@checked_arguments()
def memory_plan(
    model: torch.nn.Module,
    example: Any,
    machine: Machine | str,
    *,
    budget: int | None = None,
    optimizer: str = "adam",
    loss: Callable[[Any], torch.Tensor] | None = None,
    autocast: torch.dtype | None = None,
    device: str | torch.device = "cpu",
) -> MemoryPlan:
    """The memory of a training step of `model(*example)`, worked out on fake tensors: nothing is computed or changed.

    Categories: parameters (and buffers), inputs, gradients, optimizer state, activations (what the forward pass leaves
    for the backward pass), autocast's cast cache, temporaries. Scratch memory inside kernels is out of sight; a plan
    with recurrent layers says in `notes` that their workspace is missing. `loss`
    makes one number of the output (its sum unless given); `optimizer` is one of 'none', 'sgd', 'momentum', 'adam'.
    On the device 'cuda' sizes are rounded as its allocator does, and the optimizer updates all parameters at once. A
    machine without CUDA plans it on fake CPU tensors with CUDA's dropout (a mask of bytes); autocast it refuses.

    With a `budget` in bytes, the plan places checkpoints and copies to the host in the least time on `machine`.
    EdlError where the model cannot run on fake tensors.

    >>> layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> plan = memory_plan(layers, torch.zeros(2, 8), "H200", optimizer="sgd")
    >>> plan.peak.held_bytes["parameters"], plan.peak.held_bytes["inputs"]
    (324, 64)
    """
    if budget is not None:
        require_positive(budget=budget)
    device = device if isinstance(device, str) else device.type
    target = Machine.of(machine) if isinstance(machine, str) else machine
    inputs = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    if optimizer not in OPTIMIZERS:
        raise UsageError(
            f"there is no optimizer {optimizer!r}",
            why="the optimizer's state and temporaries are part of the step",
            next=f"choose one of {', '.join(OPTIMIZERS)}",
        )
    recorder, start, blocks = _recorded(model, inputs, optimizer, loss or _sum, autocast, device)
    history = timeline(recorder, start, len(recorder.operations))
    at, _ = max(history, key=lambda state: state[1].total())
    moments = tuple(_moment(recorder, where, held) for where, held in history)
    peak = max(moments, key=lambda moment: moment.total_bytes)
    resident = sum(peak_of(history, name) for name in ("parameters", "inputs", "gradients", "optimizer", "cast cache"))
    tape = _tape(model, inputs, target, recorder, blocks, resident)
    notes = (_RECURRENT,) if any(_is_recurrent(name) for name in recorder.operations) else ()
    plan = MemoryPlan(type(model).__name__, device, peak, _owners(recorder.held, at), moments, tape, notes=notes)
    return plan if budget is None else _within(plan, budget)


# Fake tensors have no size for what oneDNN and cuDNN keep for a recurrent layer's backward pass.
_RECURRENT = (
    "a real step needs more: this plan does not include the workspace that recurrent layers keep for the backward pass"
)


def _is_recurrent(operation: str) -> bool:
    return operation.startswith(("mkldnn_rnn_layer", "_cudnn_rnn", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"))


def peak_of(history: list[tuple[int, Counter[str]]], category: str) -> int:
    """The largest number of bytes of one category at any moment."""
    return max(held[category] for _, held in history)


@dataclass(eq=False)
class _Block:
    """A layer while it runs: where its forward pass ends, what it makes and what it reads."""

    name: str
    stop: int = 0
    outputs: tuple[StorageRecord, ...] = ()
    reads: tuple[StorageRecord, ...] = ()


def _recorded(
    model: Any, inputs: tuple[Any, ...], optimizer: str, loss: Any, autocast: torch.dtype | None, device: str
) -> tuple[StepRecorder, int, list[_Block]]:
    recorder = StepRecorder({module: name for name, module in model.named_modules()}, cuda=device == "cuda")
    blocks: list[_Block] = []
    place, casts = _place_and_casts(device, autocast)
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    try:
        with torch.random.fork_rng(devices=()), as_fake(model, inputs, device=place) as fakes:
            make, trained = OPTIMIZERS[optimizer], [p for p in model.parameters() if p.requires_grad]
            # On CUDA torch updates all parameters at once by itself, but not where they are fake.
            made = None if make is None else make(trained, foreach=True if device == "cuda" else None)
            with _watched(model, recorder, blocks):
                start = run_steps(recorder, model, fakes, loss=loss, optimizer=made, autocast=casts)
    except EdlError:
        raise
    except Exception as error:
        raise EdlError(
            f"{type(model).__name__} cannot be planned",
            why=f"{type(error).__name__}: {str(error).strip()[:200]}",
            next="pass inputs that model(*example) accepts, and a loss= whose result requires a gradient",
        ) from error
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
    return recorder, start, blocks[len(blocks) // 2 :]


def _place_and_casts(device: str, autocast: torch.dtype | None) -> tuple[str, Callable[[], Any]]:
    """Where the fake tensors lie, and what a forward pass runs in."""
    stands_in = device == "cuda" and not torch.cuda.is_available()
    if stands_in and autocast is not None:
        raise UsageError(
            "autocast on CUDA cannot be planned here",
            why="this machine has no CUDA, and autocast on the CPU casts different operations than on CUDA",
            next="plan it with device='cpu', or without autocast, or on a machine with CUDA",
        )
    if stands_in:
        # torch's backward pass refuses fake CUDA tensors where no driver is.
        return "cpu", _DropoutOfCuda
    return device, contextlib.nullcontext if autocast is None else lambda: torch.autocast(device, dtype=autocast)


class _DropoutOfCuda(TorchFunctionMode):
    """Dropout as CUDA does it, which saves one byte an element; the CPU saves a mask of the input's dtype."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.dropout:
            return _native_dropout(*args, **kwargs)
        return torch.native_dropout(*args, **kwargs)[0] if func is torch.dropout else func(*args, **kwargs)


def _native_dropout(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    dropped: torch.Tensor = torch.native_dropout(x, p, training)[0]
    return x.copy_(dropped) if inplace else dropped


@contextlib.contextmanager
def _watched(model: Any, recorder: StepRecorder, blocks: list[_Block]) -> Iterator[None]:
    """Notes each layer of the model that runs, in order; containers are opened."""

    def before(module: Any, arguments: Any) -> None:
        blocks.append(_Block(names[module], reads=tuple(recorder.held_by(tensors(arguments)))))

    def after(module: Any, _: Any, output: Any) -> None:
        block = next(one for one in reversed(blocks) if one.name == names[module])
        block.stop, block.outputs = len(recorder.operations), tuple(recorder.held_by(tensors(output)))

    names = {module: name for name, module in _layers(model, "")}
    hooks = [
        hook for one in names for hook in (one.register_forward_pre_hook(before), one.register_forward_hook(after))
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _layers(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    children = list(module.named_children())
    is_open = not prefix or isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList))
    if not children or not is_open:
        yield prefix or type(module).__name__, module
        return
    for name, child in children:
        yield from _layers(child, f"{prefix}.{name}" if prefix else name)


def _tape(
    model: Any, inputs: tuple[Any, ...], machine: Machine, recorder: StepRecorder, blocks: list[_Block], resident: int
) -> Tape:
    with as_fake(model, inputs) as fakes:
        counted = count(model, *fakes)
    owner: dict[int, int] = {}
    layers: list[TapeLayer] = []
    begin = next(at for at, phase in reversed(recorder.marks) if phase == "forward")
    blocks[-1].stop = next(at for at, phase in reversed(recorder.marks) if phase == "backward")
    for index, block in enumerate(blocks):
        made = [held for held in recorder.held if begin <= held.born < block.stop]
        owner.update({id(held): index for held in made})
        output = sum(held.nbytes for held in set(block.outputs) if owner.get(id(held)) == index)
        kept = max(output, sum(held.nbytes for held in made if held.category == "activations"))
        # What was made between two layers (a sum, a flattening) belongs to the later one, which so reads its neighbour.
        read = {owner[id(held)] for held in block.reads if owner.get(id(held), index) < index}
        reads = tuple(sorted(read)) or ((index - 1,) if index else ())
        forward_s, backward_s = (_seconds(counted, block.name, way, machine) for way in ("forward", "backward"))
        layers.append(TapeLayer(block.name, kept, output, forward_s, backward_s, gradient_bytes=output, inputs=reads))
        begin = block.stop
    rate = max((link.rate for link in machine.links.values()), default=PINNED_BYTE_PER_S)
    return Tape(tuple(layers), copy_byte_per_s=rate, resident_bytes=resident, name=type(model).__name__)


def _seconds(counted: Any, name: str, way: str, machine: Machine) -> float:
    """The roofline's bound on what one layer does, operator by operator."""
    total = 0.0
    for row in counted.rows:
        if row.direction == way and f"{row.module}.".startswith(f"{name}."):
            try:
                total += bound(machine, row.work).time_s
            except EdlError:
                # Products that nobody counts, or a dtype without a ceiling: the bytes alone.
                total += row.moved_bytes / machine.memory_bandwidth_byte_per_s
    return total


def _within(plan: MemoryPlan, budget: int) -> MemoryPlan:
    if plan.peak_bytes <= budget:
        return dataclasses.replace(plan, budget_bytes=budget, advice="it fits without changes")
    try:
        placement = best_placement(as_chain(plan.tape), budget, offload=True)
    except VirtualMemoryError as error:
        return dataclasses.replace(plan, budget_bytes=budget, advice=f"{error.what}: {error.next}")
    again = sum(stop - first for first, stop in placement.recomputed)
    advice = (
        f"recompute {again} and offload {len(placement.offloaded)} of {len(as_chain(plan.tape).layers)} layers: "
        f"{byte_count(placement.replay.peak_bytes)} at the peak of the passes"
    )
    return dataclasses.replace(plan, budget_bytes=budget, placement=placement, advice=advice)


def _moment(recorder: StepRecorder, at: int, held: Counter[str]) -> MemoryMoment:
    phase = [name for begin, name in recorder.marks if begin <= at][-1]
    operation = recorder.operations[at] if at < len(recorder.operations) else "the end"
    return MemoryMoment(operation, phase, {name: held[name] for name in CATEGORIES})


def _owners(held: list[StorageRecord], at: int) -> tuple[tuple[str, int], ...]:
    """The modules that hold most activations after operation `at`."""
    sizes: Counter[str] = Counter()
    for one in held:
        if one.category == "activations" and one.born <= at and (one.died is None or one.died > at):
            sizes[one.module] += one.nbytes
    return tuple(sizes.most_common(5))


def _sum(output: Any) -> torch.Tensor:
    parts = [tensor.sum() for tensor in tensors(output) if tensor.requires_grad]
    return functools.reduce(torch.add, parts)
