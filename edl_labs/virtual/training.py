"""A small training job with real losses, whose time passes on a VirtualGPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edl_labs.virtual.errors import VirtualGPUError
from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU

if TYPE_CHECKING:
    from edl_labs.virtual.gpu.buffers import Buffer, Region

_RATE = 0.05  # the learning rate: the loss falls, and does not diverge


@dataclass(frozen=True)
class JobPlan:
    """Sizes and durations of a job. `order` says which batch each step takes; the rest is what calls cost, in SI."""

    seed: int
    order: tuple[int, ...]
    layers: int
    width: int
    samples: int
    batch_bytes: int
    read_s: float
    forward_s: float
    backward_s: float
    convert_s: float
    update_s: float
    trim_s: float

    @property
    def batches(self) -> int:
        """How many different batches there are."""
        return max(self.order) + 1

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters: a weight and a bias a layer."""
        return tuple(f"layer{layer}.{kind}" for layer in range(self.layers) for kind in ("weight", "bias"))


@dataclass(frozen=True)
class Batch:
    """A batch in the host's memory, or a copy of it on the device."""

    number: int
    buffer: Buffer = field(repr=False)
    on_device: bool = False


@dataclass(frozen=True)
class Loss:
    """The loss of a forward pass, a number on the device: `job.item(loss)` reads it."""

    buffer: Buffer = field(repr=False)
    value: float = field(repr=False)
    activations: Any = field(repr=False, compare=False)


class SmallTraining:
    """A regression with a small network. Its methods do the arithmetic, and issue to `gpu` what a GPU would do.

    `order` lists the batch of each step, `parameters` the names of the weights.

    >>> plan = JobPlan(seed=1, order=(0, 1, 0), layers=2, width=4, samples=6, batch_bytes=4096, read_s=1e-4,
    ...     forward_s=1e-5, backward_s=2e-5, convert_s=5e-6, update_s=2e-6, trim_s=1e-4)
    >>> job = SmallTraining(VirtualGPU("A100"), plan)
    >>> loss = job.forward(job.to_device(job.read(0)))
    >>> job.backward(loss)
    >>> job.update_all()
    >>> job.item(loss) > 0
    True
    """

    def __init__(self, gpu: VirtualGPU, plan: JobPlan) -> None:
        import numpy

        self.gpu, self.plan = gpu, plan
        self.order, self.parameters = list(plan.order), list(plan.parameters)
        rng = numpy.random.Generator(numpy.random.PCG64(plan.seed))
        shape = (plan.samples, plan.width)
        self._inputs = [rng.normal(size=shape) for _ in range(plan.batches)]
        mixing = rng.normal(size=(plan.width, plan.width)) / plan.width**0.5
        self._targets = [numpy.tanh(inputs @ mixing) for inputs in self._inputs]
        self._weights: dict[str, Any] = {}
        for name in self.parameters:
            size = (plan.width, plan.width) if name.endswith("weight") else (plan.width,)
            self._weights[name] = rng.normal(size=size) / plan.width**0.5
        self._gradients: dict[str, Any] = {}
        self._channels_last = False
        self._memory = {kind: gpu.empty(4 * len(self.parameters), name=kind) for kind in ("weights", "gradients")}

    def read(self, number: int, *, pin_memory: bool = False) -> Batch:
        """Read and decode a batch into fresh memory of the host: pageable, or pinned."""
        if type(number) is not int or not 0 <= number < self.plan.batches:
            raise VirtualGPUError(
                f"there is no batch {number!r}",
                why=f"batches are numbered 0 to {self.plan.batches - 1}",
                next="use numbers from job.order",
            )
        buffer = self.gpu.host_empty(self.plan.batch_bytes, pin_memory=pin_memory, name=f"batch{number}")
        self.gpu.host_work(self.plan.read_s, writes=buffer)
        return Batch(number, buffer)

    def to_device(self, batch: Batch, *, non_blocking: bool = False) -> Batch:
        """A copy of a batch on the device."""
        inside = self.gpu.empty(self.plan.batch_bytes, name=f"batch{batch.number} on device")
        self.gpu.copy(inside, batch.buffer, non_blocking=non_blocking)
        return Batch(batch.number, inside, on_device=True)

    def to_channels_last(self) -> None:
        """Convert all weights to the layout that the fast kernels want, with a kernel for each parameter."""
        for name in self.parameters:
            weight = self._part("weights", name)
            self.gpu.launch(f"convert {name}", duration_s=self.plan.convert_s, reads=weight, writes=weight)
        self._channels_last = True

    def forward(self, batch: Batch) -> Loss:
        """The loss of a batch on the device. In the wrong layout, each layer's input is converted first."""
        import numpy

        if not batch.on_device:
            raise VirtualGPUError(
                "the batch is in the host's memory",
                why="kernels can read only device memory",
                next="call job.to_device(batch) first",
            )
        loss = self.gpu.empty(4, name="loss")
        hidden = [self._inputs[batch.number]]
        for layer in range(self.plan.layers):
            self._convert()
            # What flows from layer to layer stands where the loss will be.
            read = (loss if layer else batch.buffer, *self._parts("weights", layer))
            self.gpu.launch(f"forward {layer}", duration_s=self.plan.forward_s, reads=read, writes=loss)
            weight, bias = (self._weights[f"layer{layer}.{kind}"] for kind in ("weight", "bias"))
            hidden.append(numpy.tanh(hidden[-1] @ weight + bias))
        error = hidden[-1] - self._targets[batch.number]
        return Loss(loss, float((error**2).mean()), (hidden, error))

    def backward(self, loss: Loss) -> None:
        """The gradients of a loss for all parameters; they replace those before."""
        hidden, error = loss.activations
        gradient = 2 * error / error.size
        for layer in reversed(range(self.plan.layers)):
            self._convert()
            read, written = (loss.buffer, *self._parts("weights", layer)), self._parts("gradients", layer)
            self.gpu.launch(f"backward {layer}", duration_s=self.plan.backward_s, reads=read, writes=written)
            gradient = gradient * (1 - hidden[layer + 1] ** 2)
            self._gradients[f"layer{layer}.weight"] = hidden[layer].T @ gradient
            self._gradients[f"layer{layer}.bias"] = gradient.sum(axis=0)
            gradient = gradient @ self._weights[f"layer{layer}.weight"].T

    def update(self, name: str) -> None:
        """A step of the optimizer for one parameter: one small kernel."""
        weight = self._part("weights", name)
        read = (self._part("gradients", name), weight)
        self.gpu.launch(f"update {name}", duration_s=self.plan.update_s, reads=read, writes=weight)
        self._move(name)

    def update_all(self) -> None:
        """A step of the optimizer for all parameters in one kernel, as `fused=True` asks for."""
        weights, gradients = self._memory["weights"], self._memory["gradients"]
        spent_s = 0.6 * self.plan.update_s * len(self.parameters)
        self.gpu.launch("update all", duration_s=spent_s, reads=(gradients, weights), writes=weights)
        for name in self.parameters:
            self._move(name)

    def item(self, loss: Loss) -> float:
        """The loss as a number of the host, which waits for it."""
        self.gpu.item(loss.buffer)
        return loss.value

    def empty_cache(self) -> None:
        """Give unused memory back to the driver: all must be done first, and the next step asks for it again."""
        self.gpu.synchronize()
        self.gpu.host_work(self.plan.trim_s)

    def _convert(self) -> None:
        if not self._channels_last:
            self.gpu.launch("nchwToNhwc", duration_s=self.plan.convert_s)

    def _part(self, kind: str, name: str) -> Region:
        """Where the weight or the gradient of a parameter stands."""
        start = 4 * self.parameters.index(name)
        return self._memory[kind][start : start + 4]

    def _parts(self, kind: str, layer: int) -> tuple[Region, ...]:
        return tuple(self._part(kind, f"layer{layer}.{which}") for which in ("weight", "bias"))

    def _move(self, name: str) -> None:
        if name not in self._gradients:
            raise VirtualGPUError(
                f"{name} has no gradient",
                why="no backward pass has run yet",
                next="call job.backward(loss) first",
            )
        self._weights[name] = self._weights[name] - _RATE * self._gradients[name]
