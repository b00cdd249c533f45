"""Who holds which bytes when in a training step: every storage from its birth to its end, on fake tensors or real."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from edl_labs.roofline.operators.recorded_run import tensors
from edl_labs.virtual.memory.allocator.allocator_pools import rounded

CATEGORIES = ("parameters", "inputs", "gradients", "optimizer", "activations", "cast cache", "temporaries")


@dataclass(eq=False)
class StorageRecord:
    """One storage: its bytes, when it was made and let go (in operations), by which module, and what it is for."""

    nbytes: int
    born: int
    phase: str
    module: str
    died: int | None = None
    category: str = "temporaries"
    casts_parameter: bool = False


class StepRecorder(TorchDispatchMode):
    """Watches all storages while it is entered; `phase` is what the step is doing, `marks` where each phase begins.

    With `cuda`, storages count in multiples of 512 bytes, as its allocator hands them out, and the optimizer's counts
    of steps, which torch leaves on the host, not at all.
    """

    def __init__(self, modules: dict[torch.nn.Module, str], *, cuda: bool = False) -> None:
        super().__init__()
        self._cuda = cuda
        self.held: list[StorageRecord] = []
        self.operations: list[str] = []
        self.marks: list[tuple[int, str]] = []
        self.phase = ""
        self._names = modules
        self._stack = [""]
        self._live: dict[int, StorageRecord] = {}
        self._parameters: set[int] = set()
        self._hooks: list[Any] = []

    def __enter__(self) -> StepRecorder:
        hooks = torch.nn.modules.module
        self._hooks = [
            hooks.register_module_forward_pre_hook(lambda module, _: self._stack.append(self._name(module))),
            hooks.register_module_forward_hook(lambda *_: self._leave(), always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        for hook in self._hooks:
            hook.remove()

    def there(self, found: Iterable[torch.Tensor], category: str) -> None:
        """Storages that exist before the step."""
        for tensor in found:
            storage = tensor.untyped_storage()
            if storage._cdata not in self._live:
                self._note(storage).category = category
            if category == "parameters":
                self._parameters.add(storage._cdata)

    def begin(self, phase: str) -> None:
        """What follows belongs to `phase`."""
        self.phase = phase
        self.marks.append((len(self.operations), phase))

    def forward_is_over(self) -> None:
        """What the forward pass leaves is for the backward pass, or casts of parameters that autocast caches."""
        for held in self._live.values():
            if held.phase == "forward" and held.category == "temporaries":
                held.category = "cast cache" if held.casts_parameter else "activations"

    def name(self, found: Iterable[torch.Tensor], category: str) -> None:
        """Storages that turn out to be gradients or optimizer state."""
        for tensor in found:
            held = self._live.get(tensor.untyped_storage()._cdata)
            if held is not None and held.category in ("temporaries", "activations"):
                held.category = category

    def held_by(self, found: Iterable[torch.Tensor]) -> list[StorageRecord]:
        """The records of these tensors' storages."""
        places = (tensor.untyped_storage()._cdata for tensor in found)
        return [self._live[place] for place in places if place in self._live]

    def peak_bytes(self) -> int:
        """The most bytes at any moment, of storages that were noted or made while it was entered."""
        return max((sum(live.values()) for _, live in timeline(self, 0, len(self.operations))), default=0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default and self.phase == "optimizer":
            return 1.0  # the number of the step, which no fake tensor has: sizes do not depend on it
        given = {tensor.untyped_storage()._cdata for tensor in tensors((args, kwargs))}
        result = func(*args, **kwargs)
        casts = func is torch.ops.aten._to_copy.default and bool(given & self._parameters)
        for tensor in tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata not in given and storage._cdata not in self._live and not self._on_host(tensor):
                self._note(storage).casts_parameter = casts
        # Counted last: what an operation makes is there before anything that it lets go of ends.
        self.operations.append(func._schema.name.partition("::")[2])
        return result

    def _on_host(self, tensor: torch.Tensor) -> bool:
        """Where fake CPU tensors stand in for CUDA's, a lone number that the optimizer makes counts its steps."""
        return self._cuda and tensor.device.type == "cpu" and self.phase == "optimizer" and tensor.dim() == 0

    def _note(self, storage: torch.UntypedStorage) -> StorageRecord:
        size = rounded(storage.nbytes()) if self._cuda and storage.nbytes() else storage.nbytes()
        held = StorageRecord(size, len(self.operations), self.phase, self._stack[-1])
        self.held.append(held)
        self._live[storage._cdata] = held
        weakref.finalize(storage, self._let_go, storage._cdata)
        return held

    def _let_go(self, place: int) -> None:
        held = self._live.pop(place, None)
        if held is not None:
            held.died = len(self.operations)

    def _name(self, module: torch.nn.Module) -> str:
        return self._names.get(module, self._stack[-1])

    def _leave(self) -> None:
        if len(self._stack) > 1:
            self._stack.pop()


def timeline(recorder: StepRecorder, start: int, stop: int) -> list[tuple[int, Counter[str]]]:
    """(operation, bytes by category) after each operation from `start` to `stop` that changed them."""
    changes: dict[int, Counter[str]] = {}
    for held in recorder.held:
        if held.died is not None and held.died < start:
            continue
        changes.setdefault(max(held.born, start), Counter())[held.category] += held.nbytes
        if held.died is not None:
            # What an operation lets go of is gone when the next one makes something.
            changes.setdefault(max(held.died, start), Counter())[held.category] -= held.nbytes
    live: Counter[str] = Counter()
    found = []
    for at in sorted(at for at in changes if at <= stop):
        live.update(changes[at])
        found.append((at, live.copy()))
    return found


def run_steps(
    recorder: StepRecorder,
    model: torch.nn.Module,
    inputs: tuple[Any, ...],
    *,
    loss: Callable[[Any], torch.Tensor],
    optimizer: torch.optim.Optimizer | None,
    autocast: Any,
) -> int:
    """Two steps, since the first one makes the optimizer's state; gives the operation with which the second begins."""
    recorder.there(model.parameters(), "parameters")
    recorder.there(model.buffers(), "parameters")
    recorder.there(tensors(inputs), "inputs")
    begun = 0
    with recorder:
        for _ in range(2):
            begun = len(recorder.operations)
            recorder.begin("forward")
            with autocast():
                value = loss(model(*inputs))
                # Before autocast ends, and its cache with it.
                recorder.forward_is_over()
            recorder.begin("backward")
            value.backward()
            recorder.name([p.grad for p in model.parameters() if p.grad is not None], "gradients")
            del value
            recorder.begin("optimizer")
            if optimizer is not None:
                optimizer.step()
                state = [tensor for one in optimizer.state.values() for tensor in tensors(one)]
                recorder.name(state, "optimizer")
                del state
            recorder.begin("zero_grad")
            for parameter in model.parameters():
                parameter.grad = None
    return begun
