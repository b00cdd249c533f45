"""One layout of a training step, priced: memory, bytes by kind of link, and seconds."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from edl_labs.roofline.network.alpha_beta import CollectiveCost, GroupLinks, collective_cost, point_to_point_s
from edl_labs.roofline.network.sharded_training import (
    Calls,
    block_activation_bytes,
    bubble_fraction,
    micro_batches_in_flight,
    tensor_calls,
    zero_bytes_per_parameter,
    zero_calls,
)
from edl_labs.roofline.network.training_jobs import GPUCluster, Transformer, group_levels
from edl_labs.values import Value

_LOGIT_BYTES = 4  # the loss is computed in fp32


@dataclass(frozen=True, repr=False)
class Layout(Value):
    """One way to lay a step over a cluster: what a GPU holds, what it sends on each kind of link, and the seconds.

    `why` says what keeps it from running; then the figures are those that come nearest, or none.
    """

    DERIVED = ("fits", "memory_bytes", "step_s")

    data: int
    tensor: int
    pipeline: int
    why: str = ""
    zero: int = 0
    recompute: bool = False
    micro_batch: int = 0
    micro_batches: int = 0
    state_bytes: float = 0.0
    activation_bytes: float = 0.0
    link_bytes: Mapping[str, float] = field(default_factory=dict, hash=False)
    compute_s: float = math.inf
    tensor_s: float = 0.0
    pipeline_s: float = 0.0
    data_s: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether it runs."""
        return not self.why

    @property
    def memory_bytes(self) -> float:
        """What the fullest GPU holds at its peak."""
        return self.state_bytes + self.activation_bytes

    @property
    def step_s(self) -> float:
        """Arithmetic, sums of split blocks, bubble and hand-overs, and sums of gradients that nothing hides."""
        return self.compute_s + self.tensor_s + self.pipeline_s + self.data_s


@dataclass(frozen=True)
class PricedLayout:
    """One choice of everything, and its parts as they are priced."""

    model: Transformer
    cluster: GPUCluster
    data: int
    tensor: int
    pipeline: int
    zero: int
    recompute: bool
    micro_batch: int
    micro_batches: int

    def layout(self) -> Layout:
        one_s, sums_s = (
            self.micro_compute_s,
            self.seconds_of(self.tensor_calls, self.tensor_levels) / self.micro_batches,
        )
        busy_s = (one_s + sums_s) * self.micro_batches
        bubble = bubble_fraction(self.pipeline, self.micro_batches)
        return Layout(
            *(
                self.data,
                self.tensor,
                self.pipeline,
                "",
                self.zero,
                self.recompute,
                self.micro_batch,
                self.micro_batches,
            ),
            state_bytes=self.state_bytes,
            activation_bytes=self.activation_bytes,
            link_bytes=self.link_bytes,
            compute_s=one_s * self.micro_batches,
            tensor_s=sums_s * self.micro_batches,
            pipeline_s=busy_s * bubble / (1 - bubble) + self.hand_over_s,
            data_s=self.exposed_s,
        )

    @property
    def stage_parameters(self) -> float:
        """Of the fullest stage, which has an embedding too."""
        model = self.model
        return (model.layers // self.pipeline * model.block_parameters + model.embedding_parameters) / self.tensor

    @property
    def tokens(self) -> int:
        return self.micro_batch * self.model.sequence

    @property
    def micro_compute_s(self) -> float:
        """Of one micro-batch on one stage, both ways."""
        flops = self.model.flops(self.micro_batch, recompute=self.recompute)
        return flops / self.tensor / self.pipeline / self.cluster.gpu_flop_per_s

    @property
    def state_bytes(self) -> float:
        state, model = self.model.state, self.model
        kept = zero_bytes_per_parameter(self.zero, ranks=self.data, state=state) * self.stage_parameters
        # Stage 3 holds two blocks' whole weights: the one that runs, and the next, on its way.
        return kept + (2 * model.block_parameters * state.weights / self.tensor if self.zero == 3 else 0)

    @property
    def activation_bytes(self) -> float:
        blocks = self.model.layers // self.pipeline
        kept, whole = (
            block_activation_bytes(self.tokens, hidden=self.model.hidden, ranks=self.tensor, recompute=recompute)
            for recompute in (self.recompute, False)
        )
        logits = self.tokens * self.model.vocabulary / self.tensor * _LOGIT_BYTES
        flying = {
            stage: micro_batches_in_flight("1f1b", stage=stage, stages=self.pipeline, micro_batches=self.micro_batches)
            for stage in (0, self.pipeline - 1)
        }
        last = self.pipeline - 1
        held = [flying[stage] * blocks * kept + (logits if stage == last else 0) for stage in flying]
        return max(held) + (whole if self.recompute else 0)

    @property
    def tensor_levels(self) -> tuple[GroupLinks, ...]:
        return group_levels(self.cluster.levels, stride=1, size=self.tensor)

    @property
    def data_levels(self) -> tuple[GroupLinks, ...]:
        return group_levels(self.cluster.levels, stride=self.tensor, size=self.data)

    @property
    def stage_link(self) -> GroupLinks:
        """The slowest link between neighbouring stages."""
        groups = group_levels(self.cluster.levels, stride=self.tensor * self.data, size=self.pipeline)
        return [level for level in groups if level.ranks > 1][-1]

    @property
    def tensor_calls(self) -> tuple[Calls, ...]:
        one = tensor_calls(
            self.tokens,
            hidden=self.model.hidden,
            blocks=self.model.layers // self.pipeline,
            ranks=self.tensor,
            recompute=self.recompute,
        )
        return tuple(dataclasses.replace(calls, times=calls.times * self.micro_batches) for calls in one)

    @property
    def data_calls(self) -> tuple[Calls, ...]:
        return zero_calls(
            self.zero,
            self.stage_parameters,
            ranks=self.data,
            state=self.model.state,
            micro_batches=self.micro_batches,
        )

    @property
    def hand_over_bytes(self) -> float:
        """Activations to the next stage and their gradients back, of one micro-batch."""
        return 2.0 * 2 * self.tokens * self.model.hidden if self.pipeline > 1 else 0.0

    @property
    def hand_over_s(self) -> float:
        if self.pipeline == 1:
            return 0.0
        slots = self.micro_batches + self.pipeline - 1
        return slots * 2 * point_to_point_s(self.hand_over_bytes / 2, self.stage_link)

    @property
    def exposed_s(self) -> float:
        """Of the collectives over data: what no arithmetic hides."""
        backward = (3 if self.recompute else 2) / (4 if self.recompute else 3)
        exposed_s = 0.0
        for calls in self.data_calls:
            each_s = _price(calls, self.data_levels).seconds
            if calls.operation != "all_gather":
                hidden_s = backward * self.micro_compute_s
            else:
                # Stage 3 gathers before each pass, while another block computes; stages 1 and 2 after the update.
                hidden_s = self.micro_compute_s / 2 if self.zero == 3 else 0.0
            exposed_s += calls.times * max(0.0, each_s - hidden_s)
        return exposed_s

    @property
    def link_bytes(self) -> dict[str, float]:
        """Bytes that a GPU sends in a step, by kind of link."""
        found: dict[str, float] = dict.fromkeys((level.name for level in self.cluster.levels), 0.0)
        for calls, levels in ((self.tensor_calls, self.tensor_levels), (self.data_calls, self.data_levels)):
            for one in calls:
                for level in _price(one, levels).by_level:
                    found[level.level] += one.times * level.path_bytes
        if self.pipeline > 1:
            found[self.stage_link.name] += self.micro_batches * self.hand_over_bytes
        return found

    def seconds_of(self, calls: tuple[Calls, ...], levels: tuple[GroupLinks, ...]) -> float:
        return sum(one.times * _price(one, levels).seconds for one in calls)


def _price(calls: Calls, levels: tuple[GroupLinks, ...]) -> CollectiveCost:
    return _priced_once(calls.operation, calls.message_bytes, tuple(level for level in levels if level.ranks > 1))


@functools.lru_cache(maxsize=4096)  # the same sums come back in many layouts of one plan
def _priced_once(operation: str, message_bytes: float, levels: tuple[GroupLinks, ...]) -> CollectiveCost:
    return collective_cost(operation, message_bytes, levels)
