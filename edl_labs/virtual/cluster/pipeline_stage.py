"""A stage of a pipeline on one rank: micro-batches that go forward and back through layers which lie on several GPUs.

The calls have the names that Megatron gives to its messages between stages.
"""

from __future__ import annotations

from collections.abc import Iterable

from edl_labs.virtual.cluster.rank import Rank, Work
from edl_labs.virtual.cluster.rank_device import RankTensor
from edl_labs.virtual.errors import VirtualClusterError


class PipelineStage:
    """The layers of stage `dist.rank`, for a step of `micro` micro-batches.

    A message between stages has `elements`; from its forward to its backward pass a micro-batch keeps `kept` elements
    here. What is sent is given back when it has been received.
    """

    def __init__(
        self, dist: Rank, *, micro: int, elements: int, kept: int, forward_s: float, backward_s: float
    ) -> None:
        self.stage, self.stages, self.micro = dist.rank, dist.world_size, micro
        self._dist, self._elements, self._kept = dist, elements, kept
        self._forward_s, self._backward_s = forward_s, backward_s
        self._inputs: dict[int, RankTensor] = {}
        self._activations: dict[int, RankTensor] = {}
        self._outputs: dict[int, RankTensor] = {}
        self._output_gradients: dict[int, RankTensor] = {}
        self._input_gradients: dict[int, RankTensor] = {}
        self._sending: dict[int, Work] = {}
        self._returning: list[tuple[Work, RankTensor]] = []

    def recv_forward(self, i: int) -> None:
        """Wait for micro-batch `i` from the previous stage. VirtualClusterError: there is none."""
        self._check(i, "recv_forward")
        self._neighbour(self.stage - 1, f"recv_forward({i})")
        self._inputs[i] = self._dist.empty(self._elements, name=f"input {i}")
        self._dist.recv(self._inputs[i], self.stage - 1, name=f"forward {i}")

    def forward(self, i: int) -> None:
        """The forward pass of micro-batch `i` through this stage's layers."""
        self._check(i, "forward")
        reads = [self._needed(self._inputs, i, "forward", "recv_forward")] if self.stage else []
        self._activations[i] = self._dist.empty(self._kept, name=f"activations {i}")
        writes = [self._activations[i]]
        if self.stage < self.stages - 1:
            self._outputs[i] = self._dist.empty(self._elements, name=f"output {i}")
            writes.append(self._outputs[i])
        name = f"forward {i} of stage {self.stage}"
        self._dist.launch(name, duration_s=self._forward_s, reads=reads, writes=writes)

    def send_forward(self, i: int) -> None:
        """Send micro-batch `i` to the next stage, and wait until it has been received."""
        self._check(i, "send_forward")
        self._neighbour(self.stage + 1, f"send_forward({i})", does="sends to")
        self._dist.send(self._needed(self._outputs, i, "send_forward", "forward"), self.stage + 1, name=f"forward {i}")

    def isend_forward(self, i: int) -> None:
        """Start to send micro-batch `i` to the next stage, and continue."""
        self._check(i, "isend_forward")
        self._neighbour(self.stage + 1, f"isend_forward({i})", does="sends to")
        output = self._needed(self._outputs, i, "isend_forward", "forward")
        self._sending[i] = self._dist.isend(output, self.stage + 1, name=f"forward {i}")

    def recv_backward(self, i: int) -> None:
        """Wait for the gradient of micro-batch `i` from the next stage. VirtualClusterError: there is none."""
        self._check(i, "recv_backward")
        self._neighbour(self.stage + 1, f"recv_backward({i})")
        self._output_gradients[i] = self._dist.empty(self._elements, name=f"output gradient {i}")
        self._dist.recv(self._output_gradients[i], self.stage + 1, name=f"backward {i}")

    def backward(self, i: int) -> None:
        """The backward pass of micro-batch `i`, which frees what its forward pass kept."""
        self._check(i, "backward")
        reads = [self._needed(self._activations, i, "backward", "forward")]
        if self.stage < self.stages - 1:
            reads.append(self._needed(self._output_gradients, i, "backward", "recv_backward"))
        writes = []
        if self.stage:
            writes = [self._dist.empty(self._elements, name=f"input gradient {i}")]
            self._input_gradients[i] = writes[0]
        name = f"backward {i} of stage {self.stage}"
        self._dist.launch(name, duration_s=self._backward_s, reads=reads, writes=writes)
        if i in self._sending:
            self._sending.pop(i).wait()
        for held in (self._inputs, self._activations, self._outputs, self._output_gradients):
            if i in held:
                self._dist.free(held.pop(i))

    def send_backward(self, i: int) -> None:
        """Send the gradient of micro-batch `i` to the previous stage, and wait until it has been received."""
        self._check(i, "send_backward")
        self._neighbour(self.stage - 1, f"send_backward({i})", does="sends to")
        gradient = self._needed(self._input_gradients, i, "send_backward", "backward")
        self._dist.send(gradient, self.stage - 1, name=f"backward {i}")
        self._dist.free(self._input_gradients.pop(i))

    def isend_backward(self, i: int) -> None:
        """Start to send the gradient of micro-batch `i` to the previous stage, and continue."""
        self._check(i, "isend_backward")
        self._neighbour(self.stage - 1, f"isend_backward({i})", does="sends to")
        gradient = self._needed(self._input_gradients, i, "isend_backward", "backward")
        for work, sent in self._returning:
            work.wait()
            self._dist.free(sent)
        work = self._dist.isend(gradient, self.stage - 1, name=f"backward {i}")
        self._returning = [(work, self._input_gradients.pop(i))]

    def _check(self, i: int, call: str) -> None:
        if 0 <= i < self.micro:
            return
        raise VirtualClusterError(
            f"{call}({i}) on stage {self.stage}: there is no micro-batch {i}",
            why=f"the step has {self.micro} micro-batches, numbered 0 to {self.micro - 1}",
            next="keep every number below stage.micro; if there are few micro-batches, stop the warm-up after the "
            "last micro-batch",
        )

    def _neighbour(self, stage: int, call: str, *, does: str = "receives from") -> None:
        if 0 <= stage < self.stages:
            return
        which, made = ("first", "its input is the data") if stage < 0 else ("last", "its gradients start at the loss")
        if does == "sends to":
            made = "the gradients of the data are not needed" if stage < 0 else "the loss reads its output"
        then = (
            f"make this call on every stage except the {which}: "
            f"if stage.stage {'> 0' if stage < 0 else '< stage.stages - 1'}"
        )
        raise VirtualClusterError(
            f"stage {self.stage} {does} a stage that does not exist: {call}",
            why=f"stage {self.stage} is the {which} of {self.stages} stages, and {made}",
            next=then,
        )

    def _needed(self, held: dict[int, RankTensor], i: int, call: str, before: str) -> RankTensor:
        if i in held:
            return held[i]
        raise VirtualClusterError(
            f"stage {self.stage} cannot do {call}({i}) yet",
            why=f"{before}({i}) has not run, or its result has been used already; results are available for: "
            f"{_listed(held)}",
            next=f"call {before}({i}) first",
        )


def _listed(held: Iterable[int]) -> str:
    return ", ".join(map(str, held)) or "none"


__all__ = ["PipelineStage"]
