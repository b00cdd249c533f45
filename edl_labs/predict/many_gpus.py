"""A step on many GPUs: shards, pipelines and their messages, scheduled on a VirtualCluster."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.predict.machine_card import MachineCard
from edl_labs.predict.recorded_step import Moment, StepRecording
from edl_labs.predict.step_kernels import Product, StepKernel
from edl_labs.predict.step_times import PlayedStep
from edl_labs.virtual import VirtualMachine
from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts, LinkLevel, VirtualCluster

_SEGMENTS = 24  # stretches that a pass is cut into, with a message after each: DDP has about as many buckets
_INSIDE_SHARE = 0.80  # of a port that NCCL's rings reach: 235 of 300 GB/s on A100, 367 of 450 on H200
_OUTSIDE_SHARE = 0.85  # the same between nodes: 394 of 400 to 94 of 100 Gb/s, less where racks are shared
_INSIDE_ALPHA_S, _OUTSIDE_ALPHA_S = 3.4e-6, 14e-6  # NCCL 2.27's hwLat, as in the table of links
_PORT_BYTE_PER_S = {"old": 12.5e9, "ga100": 25e9, "hopper": 50e9, "blackwell": 50e9}  # a port a GPU: DGX-1 to DGX B200
# Time alone is asked of the cluster that is played: what fits is reckoned from the recording.
_ENDLESS = dataclasses.replace(VirtualMachine(), memory_bytes=10**13)
_SIMULATED = 64  # ranks that are played; larger rings are priced as rings and played by a rank of each node


@dataclass(frozen=True)
class ParallelLayout:
    """How a step is spread: `gpus` = `dp` × `tp` × `pp`, `zero` 0 to 3, `micro_batches` through a pipeline.

    `sequence` shards norms and residuals too. `interleave` is the number of stages a rank of a pipeline has.
    `node_gpus` share links of `inside_byte_per_s`; each GPU has `outside_byte_per_s` between nodes. 0: of the card.
    `stage_of` says that the model is already one of so many stages. `wide_state` keeps shards of weights, gradients and
    optimizer in fp32 where the passes run in 16 bits, as FSDP's mixed precision does; `offload` keeps the optimizer and
    the gradients' shards in the host's memory.
    """

    gpus: int
    dp: int = 0
    tp: int = 1
    pp: int = 1
    zero: int = 0
    micro_batches: int = 1
    interleave: int = 1
    sequence: bool = False
    node_gpus: int = 8
    inside_byte_per_s: float = 0.0
    outside_byte_per_s: float = 0.0
    gradient_bytes: int = 0
    stage_of: int = 1
    wide_state: bool = False
    offload: bool = False

    @classmethod
    def of(cls, given: Any) -> ParallelLayout:
        """From a number of GPUs (data parallel), a mapping of fields, or itself; UsageError where they do not fit."""
        if isinstance(given, ParallelLayout):
            spread = given
        elif isinstance(given, Integral):
            spread = cls(int(given))
        elif isinstance(given, Mapping):
            known = {one.name for one in dataclasses.fields(cls)}
            strange = sorted(set(given) - known)
            if strange or "gpus" not in given:
                raise UsageError(
                    f"a cluster has no field {strange[0]!r}"
                    if strange
                    else "a cluster needs the field `gpus`, the number of GPUs",
                    why=f"its fields are {', '.join(sorted(known))}",
                    next='use cluster={"gpus": 8, "zero": 3}',
                )
            spread = cls(**given)
        else:
            raise UsageError(
                f"cluster must be a number of GPUs or a dict, got {type(given).__name__}.",
                why="A number alone means data parallelism; a dict adds tensor and pipeline parallelism.",
                next='Pass cluster=8, or {"gpus": 16, "tp": 8, "zero": 1}.',
            )
        whole = all(isinstance(value, int) and value >= 1 for value in (spread.gpus, spread.tp, spread.pp))
        dp = spread.dp or (spread.gpus // (spread.tp * spread.pp) if whole else 0)
        if not whole or dp * spread.tp * spread.pp != spread.gpus or not 0 <= spread.zero <= 3:
            raise UsageError(
                f"{spread.gpus} GPUs are not {dp} × {spread.tp} × {spread.pp}",
                why="`gpus` must equal dp × tp × pp, and the ZeRO stage `zero` must be 0 to 3",
                next="change one of these numbers",
            )
        return dataclasses.replace(spread, dp=dp)

    def machine(self, card: MachineCard) -> ClusterMachine:
        """The cluster with this card's links, at the share of their rate that collectives reach."""
        inside = self.inside_byte_per_s or card.link_byte_per_s or 16e9
        outside = self.outside_byte_per_s or _PORT_BYTE_PER_S.get(card.family, 12.5e9)
        node = min(self.node_gpus, self.gpus)
        levels = [LinkLevel("inside", node, _INSIDE_ALPHA_S, inside * _INSIDE_SHARE)]
        if self.gpus > node:
            levels.append(LinkLevel("between nodes", self.gpus, _OUTSIDE_ALPHA_S, outside * _OUTSIDE_SHARE))
        return ClusterMachine(self.gpus, tuple(levels), _ENDLESS)


def sharded(kernels: Sequence[StepKernel], spread: ParallelLayout) -> list[StepKernel]:
    """What one GPU of a tensor-parallel group runs: each product, and what lies between a pair of them, in parts.

    Of a product the longer side of its weight is cut, never the tokens; attention is cut by heads. Norms and residuals
    stay whole unless `sequence`.
    """
    if spread.tp == 1:
        return list(kernels)
    width, tokens = _common_width(kernels), _common_tokens(kernels)
    return [_cut(kernel, spread.tp, width, tokens, whole=not spread.sequence) for kernel in kernels]


def _common_width(kernels: Sequence[StepKernel]) -> float:
    """Bytes of the residual stream: the size that norms write."""
    sizes = [kernel.writes[0][1] for kernel in kernels if kernel.kind == "norm" and kernel.writes]
    return max(sizes, default=0.0)


def _common_tokens(kernels: Sequence[StepKernel]) -> int:
    """Rows that most products of the forward pass have: those of the activations."""
    rows = Counter(
        one.product.m
        for one in kernels
        if one.product is not None and one.phase == "forward" and one.product.batch == 1
    )
    return rows.most_common(1)[0][0] if rows else 0


def _cut(kernel: StepKernel, part: int, width: float, tokens: int, *, whole: bool) -> StepKernel:
    if kernel.product is not None:
        p = kernel.product
        if p.batch >= part:
            cut = p._replace(batch=p.batch // part)
        elif kernel.phase == "backward" and p.k == tokens and p.m != tokens:
            # The gradient of a weight: both of its sides are the weight's.
            cut = p._replace(n=max(1, p.n // part)) if p.n >= p.m else p._replace(m=max(1, p.m // part))
        else:
            cut = p._replace(n=max(1, p.n // part)) if p.n >= p.k else p._replace(k=max(1, p.k // part))
        moved = kernel.moved_bytes * _elements(cut) / _elements(p)
        return kernel._replace(product=cut, flops=kernel.flops / part, moved_bytes=moved)
    if kernel.attention is not None:
        form = kernel.attention._replace(pairs=kernel.attention.pairs / part)
        return kernel._replace(attention=form, flops=kernel.flops / part, moved_bytes=kernel.moved_bytes / part)
    stays = kernel.kind == "norm" or (
        kernel.writes and kernel.writes[0][1] <= 1.01 * width and kernel.kind != "optimizer"
    )
    if stays and whole:
        return kernel
    return kernel._replace(moved_bytes=kernel.moved_bytes / part)


def _elements(p: Product) -> float:
    return float(p.batch) * (p.m * p.k + p.k * p.n + p.m * p.n)


@dataclass(frozen=True)
class SpreadTimes:
    """A step on many GPUs: its seconds, those in which communication alone was waited for, and messages in bytes."""

    total_s: float
    waited_s: float
    sent_bytes: float


def spread_times(
    played: PlayedStep,
    recording: StepRecording,
    card: MachineCard,
    spread: ParallelLayout,
    *,
    accumulate: int,
    hidden_bytes: float,
) -> SpreadTimes:
    """The step of a spread model, from what one GPU's part takes; `hidden_bytes` is one activation between layers."""
    machine = spread.machine(card)
    costs = CollectiveCosts(machine)
    micro = max(1, accumulate)
    forward = played.phases.get("forward", 0.0) / micro
    backward = played.phases.get("backward", 0.0) / micro
    update = played.phases.get("optimizer", 0.0)
    blocks = max(1, recording.blocks)
    tp_s = _tensor_seconds(costs, spread, hidden_bytes, blocks)
    forward, backward = forward + tp_s, backward + tp_s * (2 if recording.checkpointed else 1)
    shards = spread.dp if spread.zero else 1
    update = update / (spread.tp * shards)
    _, piped = _pipeline(costs, spread, forward, backward, micro, hidden_bytes)
    total_s, sent = _data_parallel(machine, spread, recording, forward, backward, micro if piped == 0 else 1)
    if piped:
        total_s = total_s - forward - backward + piped
    alone = (forward - tp_s + backward - tp_s * (2 if recording.checkpointed else 1)) * micro
    waited = max(0.0, total_s - alone)
    return SpreadTimes(total_s + update, waited, sent)


def _tensor_seconds(costs: CollectiveCosts, spread: ParallelLayout, hidden_bytes: float, blocks: int) -> float:
    """Two sums over the group in each block and pass; with `sequence` each is a gather and a scatter, as many bytes."""
    if spread.tp == 1:
        return 0.0
    group = tuple(range(spread.tp))
    return 2 * blocks * costs.plan("all_reduce", group, hidden_bytes).seconds(hidden_bytes)


def _pipeline(
    costs: CollectiveCosts, spread: ParallelLayout, forward: float, backward: float, micro: int, hidden_bytes: float
) -> tuple[float, float]:
    """(bubble, whole) seconds of a pipeline of one-forward-one-backward; 0, 0 without one."""
    if spread.pp == 1:
        return 0.0, 0.0
    batches = max(spread.micro_batches, micro)
    far = spread.tp * spread.dp >= spread.node_gpus or spread.pp * spread.tp > spread.node_gpus
    level = costs.machine.levels[-1 if far else 0]
    message = level.alpha_s + hidden_bytes / spread.tp / level.byte_per_s
    one = (forward + backward) / (spread.pp / spread.stage_of) + 2 * message
    bubble = (spread.pp - 1) * one / spread.interleave
    return bubble, batches * one + bubble


def _data_parallel(
    machine: ClusterMachine,
    spread: ParallelLayout,
    recording: StepRecording,
    forward: float,
    backward: float,
    micro: int,
) -> tuple[float, float]:
    """Passes of one rank with buckets reduced, or shards gathered, beside them: played on a VirtualCluster."""
    whole = (forward + backward) * micro
    if spread.dp == 1:
        return whole, 0.0
    parameters = recording.parameters / spread.tp / (spread.pp / spread.stage_of)
    wire = spread.gradient_bytes or (2 if recording.dtype not in ("fp32", "tf32") else 4)
    ring = _ring(machine, spread)
    pieces = min(_SEGMENTS, max(2, recording.blocks))
    count = max(spread.dp, int(parameters / pieces) // spread.dp * spread.dp)

    def program(dist: Any) -> None:
        size = dist.get_world_size()
        part = max(1, count // size)
        buckets = [dist.tensor(part * size, dtype="fp16", name=f"bucket {i}") for i in range(pieces)]
        shards = [dist.tensor(part, dtype="fp16", name=f"shard {i}") for i in range(pieces)]
        gradients = [
            dist.tensor(part * size, dtype="fp16" if wire == 2 else "fp32", name=f"gradient {i}") for i in range(pieces)
        ]
        kept = [dist.tensor(part, dtype="fp16" if wire == 2 else "fp32", name=f"kept {i}") for i in range(pieces)]
        works: list[Any] = []
        for step in range(micro):
            for is_back, seconds in ((False, forward), (True, backward)):
                order = list(range(pieces))[:: -1 if is_back else 1]
                gathered = {}
                if spread.zero == 3:
                    for i in order[:2]:
                        gathered[i] = dist.all_gather(buckets[i], shards[i], async_op=True)
                for place, i in enumerate(order):
                    if spread.zero == 3:
                        gathered.pop(i).wait()
                        for j in order[place + 2 : place + 3]:
                            gathered[j] = dist.all_gather(buckets[j], shards[j], async_op=True)
                    dist.launch("pass", duration_s=seconds / pieces, writes=gradients[i] if is_back else [])
                    last = step == micro - 1
                    if is_back and (last or spread.zero == 3):
                        if spread.zero >= 2:
                            works.append(dist.reduce_scatter(kept[i], gradients[i], async_op=True))
                        else:
                            works.append(dist.all_reduce(gradients[i], async_op=True))
        for work in works:
            work.wait()
        if spread.zero in (1, 2):
            for i in range(pieces):
                dist.all_gather(buckets[i], shards[i])
        dist.synchronize()

    replay = VirtualCluster(ring).run(program).require_finished()
    sent = sum(replay.sent_bytes.values()) / ring.ranks
    return replay.makespan_s, sent


def _ring(machine: ClusterMachine, spread: ParallelLayout) -> ClusterMachine:
    """The ranks that share gradients: neighbours where nothing else is inside a node, else one of each group.

    Rings of more than a few nodes cost as much as one of `_SIMULATED` ranks but for the hops of their start.
    """
    inside, outside = machine.levels[0], machine.levels[-1]
    taken = spread.tp * (spread.pp if spread.tp * spread.pp < spread.node_gpus else 1)
    here = max(1, min(spread.dp, spread.node_gpus // taken))
    if spread.dp <= here:
        only = LinkLevel(inside.name, spread.dp, inside.alpha_s, inside.byte_per_s)
        return ClusterMachine(spread.dp, (only,), _ENDLESS)
    nodes = math.ceil(spread.dp / here)
    played = max(2, min(nodes, _SIMULATED // here))
    ranks = here * played
    # Hops that are not played are added to each message.
    alpha = outside.alpha_s * nodes / played
    levels = [LinkLevel(inside.name, here, inside.alpha_s, inside.byte_per_s)] if here > 1 else []
    return ClusterMachine(ranks, (*levels, LinkLevel(outside.name, ranks, alpha, outside.byte_per_s)), _ENDLESS)


def spread_held(recording: StepRecording, spread: ParallelLayout, moment: Moment) -> dict[str, int]:
    """Bytes by category of one GPU's part at `moment`.

    Shards of ZeRO are of whole tensors' bytes; while a block runs, it and the next one are there in full, as is what
    lies outside of blocks, and in the backward pass a block's gradients before they are summed.
    """
    model = spread.tp * (spread.pp / spread.stage_of)
    shards = {stage: spread.dp if spread.zero >= stage else 1 for stage in (1, 2, 3)}
    parts = {"parameters": model * shards[3], "gradients": model * shards[2], "optimizer": model * shards[1]}
    parts |= {"cast cache": model * shards[3], "inputs": 1}
    if moment.phase in ("optimizer", "zero_grad"):
        parts["temporaries"] = parts["optimizer"]
    itemsize = recording.parameter_bytes / max(1, recording.parameters)
    wide = 4 / itemsize if spread.wide_state else 1.0
    held = {}
    for name, size in moment.held.items():
        sharded_state = name in ("parameters", "gradients", "optimizer") and spread.zero > 0
        held[name] = int(size / parts.get(name, model) * (wide if sharded_state else 1.0))
    if spread.offload:
        held |= dict.fromkeys(("optimizer", "gradients"), 0)
    if spread.zero == 3 and moment.phase in ("forward", "backward"):
        low = 2 if recording.dtype not in ("fp32", "tf32") else 4
        block = recording.block_parameters
        rest = recording.parameters - block * recording.blocks
        gathered = (2 * block + rest) * low
        if moment.phase == "backward":
            gathered += block * (low + 4)  # as the pass made it, and as it is summed in fp32
        held["gathered"] = int(gathered / model)
    return held
