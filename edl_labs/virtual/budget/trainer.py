"""What a training program sees of its GPU: calls that load, copy, compute, sum and update, and are recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from edl_labs.virtual.budget.training_job import TrainingJob
from edl_labs.virtual.cluster.rank import Rank, Work
from edl_labs.virtual.cluster.rank_device import ClusterEvent, ClusterStream, RankTensor
from edl_labs.virtual.cluster.replay import ClusterProgram
from edl_labs.virtual.errors import VirtualClusterError, shown
from edl_labs.virtual.quantities import whole_number

INPUT_DTYPES = {"uint8": 1, "fp32": 4}  # bytes of an input's element
_CHECK_IT = "give the result of each call its own variable, and check which one you pass here"
OPTIMIZER_PASSES = ("decay", "momentum")  # what an update of its own kernels does before it is applied


@dataclass(frozen=True)
class Held:
    """Memory that contains `count` units of data, activations or gradients. `layer` is -1 for data."""

    tensor: RankTensor
    count: int
    layer: int
    step: int = -1


class Trainer:
    """One GPU of a training job, of which there are `ranks`; this is number `rank`.

    Kernels and copies go to the current stream and the host does not wait, unless the call says so. What calls return
    is memory on the device, which is there until `free`.
    """

    def __init__(self, job: TrainingJob, rank: Rank) -> None:
        self.job, self._rank = job, rank
        self.rank, self.ranks, self.steps = rank.rank, job.ranks, job.steps
        self.layers, self.share = job.layers, job.share
        size = sum(job.elements)
        self._weights = rank.tensor(size, name="weights")
        self._gradients = rank.zeros(size, name="gradients")
        self._momentum = rank.zeros(size, name="momentum")
        self._losses = rank.zeros(job.steps, name="losses")
        self._told = rank.empty(job.steps, name="losses on the host", where="host")

    def load(self, step: int, first: int, count: int, *, dtype: str = "fp32", pinned: bool = False) -> Held:
        """Decode `count` units of this GPU's share of a step, from unit `first`; this keeps the host busy."""
        step = self._whole("step", step, self.steps)
        first = self._whole("first", first, self.share, told="each GPU numbers its own units of a step from 0")
        left = f"this GPU has {self.share} units in a step, {self.share - first} of them from number {first} onwards"
        count = self._whole("count", count, self.share - first + 1, lowest=1, told=left)
        if dtype not in INPUT_DTYPES:
            raise self._refused("dtype", dtype, " or ".join(INPUT_DTYPES))
        busy_s = count * (self.job.decode_s + (self.job.convert_s if dtype == "fp32" else 0.0))
        self._rank.host_work(busy_s)
        kind = "pinned" if pinned else "pageable"
        name = f"data {step} {self.rank * self.share + first} {count} {kind}"
        return Held(self._rank.empty(count * self.job.inputs, dtype=dtype, name=name, where="host"), count, -1, step)

    def to_device(self, data: Held, *, non_blocking: bool = False) -> Held:
        """Copy loaded units to the device; the host waits unless they are pinned and `non_blocking` is set."""
        form = self._held(data, "loaded data", layer=-1).tensor.form
        pinned = form.name.endswith("pinned")
        copied = self._rank.empty(form.numel, dtype=form.dtype, name=f"input {data.step}")
        self._rank.copy(copied, data.tensor, duration_s=self.job.copy_s(form.nbytes, pinned=pinned))
        if not (pinned and non_blocking):
            self._rank.note({"op": "sync_stream", "stream": self._rank.current})
        return Held(copied, data.count, -1, data.step)

    def forward(self, i: int, inputs: Held, *, fused: bool = False) -> Held:
        """Run layer `i` on its input (data for layer 0): one kernel if `fused`, else separate bias and ReLU kernels."""
        i = self._whole("a layer", i, self.layers)
        self._held(inputs, f"the input of layer {i}", layer=i - 1)
        made = self._rank.empty(inputs.count * self.job.outputs[i], name=f"activations {i}")
        took = self.job.kernel_s + inputs.count * self.job.forward_s[i]
        self._rank.launch(
            f"forward {i}", duration_s=took, reads=[inputs.tensor, self._part(self._weights, i)], writes=made
        )
        if not fused:
            self._passes((f"bias {i}", f"relu {i}"), made, inputs.count)
        return Held(made, inputs.count, i, inputs.step)

    def loss(self, step: int, outputs: Held, data: Held) -> Held:
        """Add the loss of these units to that of a step; returns the gradient for the last layer's outputs."""
        step = self._whole("step", step, self.steps)
        self._held(outputs, "the outputs of the last layer", layer=self.layers - 1)
        self._held(data, "the data on the device", layer=-1)
        made = self._rank.empty(len(outputs.tensor), name=f"output gradients {self.layers - 1}")
        slot = self._losses[step : step + 1]
        self._rank.launch(
            "loss", duration_s=self.job.kernel_s, reads=[outputs.tensor, data.tensor, slot], writes=[made, slot]
        )
        return Held(made, outputs.count, self.layers - 1, outputs.step)

    def backward(self, i: int, inputs: Held, gradient: Held, *, fused: bool = False) -> Held | None:
        """Add to the gradients of layer `i`, from its input and the gradient of its output.

        Returns the gradient of its input, or None for layer 0.
        """
        i = self._whole("a layer", i, self.layers)
        self._held(inputs, f"the input that layer {i} read", layer=i - 1)
        maker = f"backward({i + 1}, …)" if i + 1 < self.layers else "loss()"
        then = f"pass the gradient that {maker} returned: the backward passes go from the last layer to the first"
        self._held(gradient, f"the gradient of the output of layer {i}", layer=i, then=then)
        weights, sums = self._part(self._weights, i), self._part(self._gradients, i)
        made = self._rank.empty(len(inputs.tensor), name=f"output gradients {i - 1}") if i else None
        if not fused:
            self._passes((f"relu back {i}", f"bias back {i}"), gradient.tensor, gradient.count)
        self._rank.launch(
            f"backward {i}",
            duration_s=self.job.kernel_s + gradient.count * self.job.backward_s[i],
            reads=[inputs.tensor, gradient.tensor, weights, sums],
            writes=[sums] if made is None else [sums, made],
        )
        return None if made is None else Held(made, gradient.count, i - 1, gradient.step)

    def all_reduce(self, first: int = 0, stop: int | None = None, *, async_op: bool = False) -> Work | None:
        """Sum the gradients of layers `first` to `stop` - 1 over all GPUs, in a ring, outside the streams.

        It starts when the current stream has done what it was given before, and the stream waits for it; with
        `async_op=True` it does not, until `wait()` of what comes back.
        """
        first, stop = self._range(first, stop)
        bounds = self.job.bounds
        sums = self._gradients[bounds[first] : bounds[stop]]
        name = f"layers {first} to {stop - 1}"
        return self._rank.all_reduce(sums, async_op=bool(async_op), algorithm="ring", name=name)

    def update(self, first: int = 0, stop: int | None = None, *, fused: bool = False) -> None:
        """Update layers `first` to `stop` - 1 and clear their gradients: one kernel if `fused`, else 3 per layer."""
        first, stop = self._range(first, stop)
        for low, high in [(first, stop)] if fused else [(i, i + 1) for i in range(first, stop)]:
            touched = [self._part(one, low, high) for one in (self._weights, self._gradients, self._momentum)]
            took = self.job.update_s(low, high)
            for kind in () if fused else OPTIMIZER_PASSES:
                self._rank.launch(f"{kind} {low}", duration_s=took, reads=touched[:1], writes=touched[:1])
            self._rank.launch(f"update {low} {high}", duration_s=took, reads=touched, writes=touched)

    def read_loss(self, step: int) -> None:
        """Read the loss of one step from the device, as `.item()` does: the host waits."""
        step = self._whole("step", step, self.steps)
        self._read(slice(step, step + 1))

    def read_losses(self) -> None:
        """Read the losses of all steps at once; the host waits."""
        self._read(slice(0, self.steps))

    def free(self, *held: Held | None) -> None:
        """Free memory; None is ignored."""
        for one in held:
            if one is not None:
                self._rank.free(self._held(one, "the result of a call").tensor)

    def synchronize(self) -> None:
        """Make the host wait until the device has finished all its work."""
        self._rank.synchronize()

    def Stream(self) -> ClusterStream:  # noqa: N802 - torch.cuda's name
        """A new stream."""
        return self._rank.Stream()

    def Event(self) -> ClusterEvent:  # noqa: N802 - torch.cuda's name
        """A new event with `record(stream)` and `wait(stream)`; the default is the current stream."""
        return self._rank.Event()

    def stream(self, stream: ClusterStream) -> AbstractContextManager[None]:
        """A context in which `stream` is the current stream."""
        return self._rank.stream(stream)

    def _read(self, slots: slice) -> None:
        self._rank.copy(self._told[slots], self._losses[slots], duration_s=self.job.copy_s(4, pinned=True))
        self._rank.note({"op": "sync_stream", "stream": self._rank.current})

    def _passes(self, names: tuple[str, ...], tensor: RankTensor, count: int) -> None:
        for name in names:
            took = self.job.kernel_s + count * self.job.pass_s
            self._rank.launch(name, duration_s=took, reads=tensor, writes=tensor)

    def _part(self, tensor: RankTensor, first: int, stop: int | None = None) -> RankTensor:
        bounds = self.job.bounds
        return tensor[bounds[first] : bounds[first + 1 if stop is None else stop]]

    def _range(self, first: int, stop: int | None) -> tuple[int, int]:
        first = self._whole("first", first, self.layers)
        above = f"stop is exclusive, as in range({first}, stop), and the model has {self.layers} layers"
        end = self.layers if stop is None else stop
        return first, self._whole("stop", end, self.layers + 1, lowest=first + 1, told=above)

    def _held(self, given: object, role: str, *, layer: int | None = None, then: str = _CHECK_IT) -> Held:
        if isinstance(given, Held) and (layer is None or given.layer == layer):
            return given
        found = f"a result of layer {given.layer}" if isinstance(given, Held) else type(given).__name__
        raise VirtualClusterError(
            f"expected {role}, got {found}",
            why="forward() returns the activations of a layer, and loss() and backward() return the gradients of a "
            "layer; the data count as layer -1",
            next=then,
        )

    def _whole(self, what: str, value: Any, end: int, *, lowest: int = 0, told: str = "") -> int:
        """`value` as an int, of whatever type a whole number is; refused unless it is in range(lowest, end)."""
        found = whole_number(value)
        if found is None or not lowest <= found < end:
            range_ = f"a whole number from {lowest} to {end - 1}" if lowest < end - 1 else f"exactly {lowest}"
            raise self._refused(what, value, f"{range_}{told and ': '}{told}")
        return found

    def _refused(self, what: str, value: object, want: str) -> VirtualClusterError:
        return VirtualClusterError(
            f"{what} is {shown(value)}", why=f"it must be {want}", next="correct the argument of this call"
        )


def record_training(job: TrainingJob, program: Callable[[Trainer], Any]) -> ClusterProgram:
    """What `program(trainer)` issues on each GPU of a job, as plain data."""
    recorded = []
    for number in range(job.ranks):
        rank = Rank(number, job.machine())
        program(Trainer(job, rank))
        recorded.append(rank.program)
    return recorded
