"""Recorded training programs replayed: how long, with how much memory, for how much money, and with which losses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from edl_labs.units import byte_count, seconds
from edl_labs.values import Value
from edl_labs.virtual.budget.curve import NotATraining, TrainingFault, TrainingFlow
from edl_labs.virtual.budget.lower_bound import lower_bound
from edl_labs.virtual.budget.trainer import INPUT_DTYPES, Trainer, record_training
from edl_labs.virtual.budget.training_job import TrainingJob
from edl_labs.virtual.case_program import CaseProgram, require_case
from edl_labs.virtual.cluster.cluster_races import ClusterRace
from edl_labs.virtual.cluster.cluster_timeline import ClusterTimeline
from edl_labs.virtual.cluster.machine import ATTOSECONDS
from edl_labs.virtual.cluster.meetings import MARK
from edl_labs.virtual.cluster.program import PROGRAM
from edl_labs.virtual.cluster.rank import Rank
from edl_labs.virtual.cluster.replay import ClusterReplay, replay_cluster
from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.timeline import Span, Timeline

_FOLLOWED = ("numel", "duration_s", "reads", "writes")  # by TrainingFlow, unit by unit
_NUMBERS = re.compile(r"-?\d+")
_MOST_OPERATIONS = 200_000  # of all GPUs: seconds of a judge's time, and no sound answer comes near


class TrainingHang(ReplayError):
    """The program never ends, because its GPUs wait for each other."""


@dataclass(frozen=True, repr=False)
class TrainingRun(Value):
    """The result of a training program.

    `efficiency` is the lower bound of its time over its time, `peak_bytes` the most memory on a GPU, `losses` the mean
    loss of each step as the program computed and read it, and `faults` where it is not the requested training.
    """

    OMITTED = ("replay",)

    makespan_s: float
    efficiency: float
    peak_bytes: int
    money: float
    losses: tuple[float, ...]
    faults: tuple[TrainingFault, ...]
    replay: ClusterReplay = field(repr=False, compare=False)

    @property
    def timeline(self) -> ClusterTimeline:
        """What ran when."""
        return self.replay.timeline

    def rows(self, rank: int = 0) -> Timeline:
        """One GPU's time in four rows: what its host loads and waits for, compute, copies, and sums over the GPUs."""
        spans = [
            Span(_row(one.kind), "comm" if one.kind == "collective" else one.kind, one.name, one.start_s, one.end_s)
            for one in self.timeline.spans
            if one.rank == rank
        ]
        order = ("compute", "copies", "sums")
        return Timeline((*_host_spans(self.replay, rank), *sorted(spans, key=lambda one: order.index(one.row))))

    @property
    def races(self) -> tuple[ClusterRace, ...]:
        """Pairs of unordered operations on the same memory."""
        return self.replay.races

    def __str__(self) -> str:
        time = f"{seconds(self.makespan_s)}, an efficiency of {self.efficiency:.0%}"
        wrong = f"; {len(self.faults)} faults, the first one: {self.faults[0].text}" if self.faults else ""
        return f"{time}, peak memory {byte_count(self.peak_bytes)}, cost {self.money:.2f}{wrong}"


def _row(kind: str) -> str:
    return {"kernel": "compute", "copy": "copies"}.get(kind, "sums")


def _host_spans(replay: ClusterReplay, rank: int) -> list[Span]:
    """What a rank's host does, as its program says: loads, and waits for the device; calls are too short to be seen."""
    ends = {
        node.index: node.done / ATTOSECONDS
        for node in replay.engine.graph.nodes
        if node.rank == rank and node.engine == MARK and node.done is not None
    }
    now_s, spans = 0.0, []
    for index, entry in enumerate(replay.programs[rank]):
        now_s += replay.engine.machine.call_overhead_s
        if entry["op"] == "host_work":
            spans.append(Span("host", "load", "load", now_s, now_s + entry["duration_s"]))
            now_s += entry["duration_s"]
        elif entry["op"] in ("sync_stream", "synchronize") and ends.get(index, 0.0) > now_s:
            spans.append(Span("host", "wait", entry["op"], now_s, ends[index]))
            now_s = ends[index]
    return spans


def case_programs(job: TrainingJob) -> list[CaseProgram]:
    """What a job fixes of each GPU's program; amounts and durations go with the units, which the data flow follows."""
    found = []
    for number in range(job.ranks):
        rank = Rank(number, job.machine())
        trainer = Trainer(job, rank)
        first = len(rank.program)
        _call_all(trainer)
        setup, named = rank.program[:first], rank.program[first:]
        found.append(CaseProgram(setup, named, derived=_FOLLOWED, key=lambda name: _NUMBERS.sub("#", name)))
    return found


def _call_all(trainer: Trainer) -> None:
    """Every call of a trainer, in each of its forms."""
    for dtype, pinned in product(INPUT_DTYPES, (True, False)):
        data = trainer.to_device(trainer.load(0, 0, 1, dtype=dtype, pinned=pinned))
    for fused in (True, False):
        held = [data]
        for i in range(trainer.layers):
            held.append(trainer.forward(i, held[-1], fused=fused))
        gradient = trainer.loss(0, held.pop(), data)
        for i in reversed(range(trainer.layers)):
            back = trainer.backward(i, held.pop(), gradient, fused=fused)
            gradient = back or gradient
        trainer.update(fused=fused)
    trainer.all_reduce()
    trainer.read_losses()


def replay_training(programs: Any, job: TrainingJob) -> TrainingRun:
    """Play the recorded programs of all GPUs; ReplayError where they are none of a Trainer's, or never end."""
    run = replay_cluster(programs, job.machine(), max_operations=_MOST_OPERATIONS)
    if run.hang is not None:
        raise TrainingHang(run.hang.what, why=run.hang.why, next=run.hang.next)
    for rank, (program, case) in enumerate(zip(run.programs, case_programs(job), strict=True)):
        require_case(PROGRAM, program, case, owner=f"GPU {rank}")
    try:
        flow = TrainingFlow(job, run.engine, run.programs)
    except (NotATraining, LookupError, ValueError, TypeError):
        raise ReplayError(
            "the program contains an operation that a Trainer never records",
            why="a Trainer records only loads, copies, passes, sums and updates, with the durations of the job",
            next="use only the trainer's own methods, and do not change its record",
        ) from None
    return TrainingRun(
        makespan_s=run.makespan_s,
        efficiency=lower_bound(job).seconds / run.makespan_s,
        peak_bytes=max(run.peak_bytes),
        money=run.makespan_s * job.ranks * job.price_per_gpu_s,
        losses=flow.losses,
        faults=tuple(flow.faults),
        replay=run,
    )


def run_training(job: TrainingJob, program: Callable[[Trainer], Any]) -> TrainingRun:
    """Record `program(trainer)` on every GPU of a job, and play it."""
    return replay_training(record_training(job, program), job)
