"""A training job with modelled costs of a step for a GPU, its host and its links, all in SI units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any

from edl_labs.virtual.cluster.collective_costs import CollectiveCosts
from edl_labs.virtual.cluster.machine import ClusterMachine
from edl_labs.virtual.errors import VirtualClusterError, shown
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.quantities import whole_number

UPDATE_BYTES = 24  # an element's weight, gradient and momentum in fp32, each read and written once
STATE_BYTES = 12  # the same three, kept
_ENOUGH_BYTES = 10**15  # memory while a program is recorded: its peak is judged afterwards, in words
_COPY_LATENCY_S = 1.5e-6  # as VirtualMachine.of has it


@dataclass(frozen=True)
class TrainingJob:
    """`steps` updates of a chain of layers, each by the sum over `units` of data, dealt evenly to `ranks` GPUs.

    Of layer l: `elements` are parameters, `outputs` the activations of a unit, `forward_s` and `backward_s` what a unit
    takes; each kernel takes `kernel_s` besides. A unit has `inputs` bytes, four times as many in fp32; to decode it
    takes the host `decode_s`, to convert it to fp32 `convert_s` more.
    """

    steps: int
    units: int
    ranks: int
    inputs: int
    elements: tuple[int, ...]
    outputs: tuple[int, ...]
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    kernel_s: float
    pass_s: float
    decode_s: float
    convert_s: float
    pinned_byte_per_s: float
    pageable_byte_per_s: float
    memory_byte_per_s: float
    call_s: float
    alpha_s: float
    link_byte_per_s: float
    memory_bytes: int
    price_per_gpu_s: float
    seed: int

    def __post_init__(self) -> None:
        for name in ("elements", "outputs", "forward_s", "backward_s"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            if len(getattr(self, name)) != len(self.elements) or not self.elements:
                raise _refused(name, getattr(self, name), "one value for each layer")
        for name in ("steps", "units", "ranks", "inputs"):
            value = whole_number(getattr(self, name))
            if value is None or value < 1:
                raise _refused(name, getattr(self, name), "a whole number of 1 or more")
            object.__setattr__(self, name, value)
        if self.units % self.ranks:
            raise _refused("ranks", self.ranks, f"a divisor of {self.units}, the number of units in a step")

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len(self.elements)

    @property
    def share(self) -> int:
        """Units of a step on each GPU."""
        return self.units // self.ranks

    @property
    def bounds(self) -> tuple[int, ...]:
        """Where each layer's parameters begin among all parameters, and the end of the last layer's."""
        return (0, *accumulate(self.elements))

    def on(self, ranks: int) -> TrainingJob:
        """The same job on a different number of GPUs."""
        return TrainingJob.from_dict({**self.to_dict(), "ranks": ranks})

    def update_s(self, first: int, stop: int) -> float:
        """Seconds of one kernel that updates layers `first` to `stop` - 1."""
        return self.kernel_s + UPDATE_BYTES * sum(self.elements[first:stop]) / self.memory_byte_per_s

    def all_reduce_s(self, elements: int) -> float:
        """Seconds that a ring needs to sum this number of fp32 elements over all GPUs."""
        ring = CollectiveCosts(self.machine()).plans("all_reduce", tuple(range(self.ranks)))["ring"]
        return ring.seconds(4 * elements)

    def copy_s(self, nbytes: int, *, pinned: bool) -> float:
        """Seconds of a copy from the host; a copy from pageable memory is staged."""
        return _COPY_LATENCY_S + nbytes / (self.pinned_byte_per_s if pinned else self.pageable_byte_per_s)

    def peak_bytes(self, count: int) -> int:
        """What micro-batches of `count` units take at the peak, with the outputs of each layer kept until it went back.

        Then layer i has its own outputs' gradient, and the one that it makes, in addition to all outputs up to its own.
        """
        outputs, held = self.outputs, 0
        most = 0
        for i, output in enumerate(outputs):
            held += output
            most = max(most, held + output + (outputs[i - 1] if i else 0))
        return STATE_BYTES * sum(self.elements) + 4 * self.steps + count * (self.inputs + 4 * most)

    def machine(self) -> ClusterMachine:
        """The cluster that it is recorded and replayed on."""
        gpu = VirtualMachine(name="the GPU of this job", memory_bytes=_ENOUGH_BYTES, copy_latency_s=_COPY_LATENCY_S)
        return ClusterMachine.flat(
            self.ranks, alpha_s=self.alpha_s, byte_per_s=self.link_byte_per_s, gpu=gpu, call_overhead_s=self.call_s
        )

    def to_dict(self) -> dict[str, Any]:
        """The job as plain data."""
        return {name: list(value) if type(value) is tuple else value for name, value in self._items()}

    def _items(self) -> Iterator[tuple[str, Any]]:
        return ((one.name, getattr(self, one.name)) for one in fields(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainingJob:
        """The job from what `to_dict` returned; other keys are ignored."""
        try:
            return cls(**{one.name: data[one.name] for one in fields(cls)})
        except (KeyError, TypeError):
            raise VirtualClusterError(
                "this does not describe a training job",
                why="this value is not a dictionary with all fields of a TrainingJob",
                next="pass the dictionary that TrainingJob.to_dict() returned",
            ) from None


def _refused(what: str, value: object, want: str) -> VirtualClusterError:
    return VirtualClusterError(
        f"the field {what} of a training job is {shown(value)}", why=f"it must be {want}", next="correct this field"
    )
