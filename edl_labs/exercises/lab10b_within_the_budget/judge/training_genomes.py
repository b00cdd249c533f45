"""A family of training programs: a genome says how one loads, cuts, overlaps, sums and updates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from edl_labs.virtual.budget import Trainer, TrainingJob, run_training


@dataclass(frozen=True)
class Genome:
    """One program: `cuts` are the micro-batches of a share, `buckets` where sums of gradients begin.

    The first and the last step have cuts of their own (none: the same). `ahead` micro-batches are loaded before they
    are needed; with `lazy`, a bucket is waited for and updated in the next step, just before its first layer.
    """

    cuts: tuple[int, ...]
    buckets: tuple[int, ...]
    first_cuts: tuple[int, ...] = ()
    last_cuts: tuple[int, ...] = ()
    ahead: int = 1
    dtype: str = "uint8"
    pinned: bool = True
    side_stream: bool = True
    fused: bool = True
    fused_update: bool = True
    whole_update: bool = True
    syncs: bool = False
    reads_each: bool = False
    asynchronous: bool = True
    lazy: bool = False


def naive_genome(job: TrainingJob) -> Genome:
    """A bad program: everything at once, one after the other."""
    return Genome(
        cuts=(1,) * job.share,
        buckets=tuple(range(job.layers)),
        ahead=0,
        dtype="fp32",
        pinned=False,
        side_stream=False,
        fused=False,
        fused_update=False,
        whole_update=False,
        syncs=True,
        reads_each=True,
        asynchronous=False,
    )


def best_genome(job: TrainingJob) -> Genome:
    """The reference: everything done well, and cut in that way of a few that is done first, one choice at a time."""
    best = min(_even(job), key=lambda genome: _makespan_s(genome, job))
    for others in (_beginnings, _last_steps, _sums):
        best = min((best, *others(best, job)), key=lambda genome: _makespan_s(genome, job))
    return best


def _makespan_s(genome: Genome, job: TrainingJob) -> float:
    return run_training(job, program_of(genome)).makespan_s


def _even(job: TrainingJob) -> list[Genome]:
    """Steps in equal micro-batches of each size that fits, after a first step in which they double."""
    sizes = range(1, _most(job) + 1)
    return list(dict.fromkeys(Genome(_parts(job.share, size), _buckets(job), _growing(job, 1, 2.0)) for size in sizes))


def _beginnings(genome: Genome, job: TrainingJob) -> list[Genome]:
    """Other first steps, in which micro-batches grow, and a few units with which the others begin.

    While one micro-batch is computed the next one is loaded, or nearly, from one step to the next too.
    """
    paces, size = (0.0, 1.5, 2.0, 3.0), max(genome.cuts)
    third = max(1, job.share // 3)
    firsts = [_growing(job, begin, by, most=most) for begin in (1, 2) for by in paces for most in (third, size)]
    few = [begin for begin in (1, 2, third) if begin < job.share]
    others = [genome.cuts, *((begin, *_parts(job.share - begin, size)) for begin in few)]
    pairs = dict.fromkeys((first, cuts) for first in firsts for cuts in others)
    return [replace(genome, first_cuts=first, cuts=cuts, last_cuts=genome.cuts) for first, cuts in pairs]


def _last_steps(genome: Genome, job: TrainingJob) -> list[Genome]:
    """The last step loads nothing for another one: equal parts, or the parts of a first step turned round."""
    ends = [_parts(job.share, size) for size in range(1, _most(job) + 1)]
    return [replace(genome, last_cuts=cuts) for cuts in dict.fromkeys([*ends, _growing(job, 1, 2.0)[::-1]])]


def _sums(genome: Genome, job: TrainingJob) -> list[Genome]:
    """Every second layer begins a bucket; each bucket is updated as soon as it is summed, by a kernel of its own."""
    if job.ranks == 1:
        return []
    buckets = {genome.buckets, (0, *range(1, job.layers, 2))}
    return [replace(genome, buckets=one, whole_update=whole) for one in sorted(buckets) for whole in (True, False)]


def _most(job: TrainingJob) -> int:
    """The most units that fit into the memory at once."""
    return max(count for count in range(1, job.share + 1) if job.peak_bytes(count) <= job.memory_bytes)


def _parts(units: int, size: int) -> tuple[int, ...]:
    """So many units in parts of about the same size, none larger than `size`."""
    parts = -(-units // size)
    return tuple(sorted(units // parts + (at < units % parts) for at in range(parts)))


def _growing(job: TrainingJob, begin: int, by: float, *, most: int = 0) -> tuple[int, ...]:
    """A share in parts that grow from `begin` by a factor; 0: by what the host can load while one is computed."""
    fixed_s = (2 * job.layers + 1) * job.kernel_s
    unit_s = sum(job.forward_s) + sum(job.backward_s)
    most, cuts = most or _most(job), [min(begin, job.share)]
    while (left := job.share - sum(cuts)) > 0:
        pace = by * cuts[-1] if by else (fixed_s + unit_s * cuts[-1]) / job.decode_s
        cuts.append(min(left, most, math.ceil(pace)))
    return tuple(sorted(cuts))


def _buckets(job: TrainingJob) -> tuple[int, ...]:
    """Layer 0 by itself, since nothing hides its sum; the others in groups that are worth their latency."""
    if job.ranks == 1:
        return (0,)
    begins, held = [], 0
    for i in reversed(range(1, job.layers)):
        held += job.elements[i]
        if 4 * held / job.ranks / job.link_byte_per_s > 2 * job.alpha_s or i == 1:
            begins.append(i)
            held = 0
    return (0, *sorted(begins))


def program_of(genome: Genome) -> Callable[[Trainer], None]:
    """The program of a genome."""
    return lambda trainer: _Program(genome, trainer).run()


class _Program:
    def __init__(self, genome: Genome, trainer: Trainer) -> None:
        self.genome, self.trainer = genome, trainer
        self.copies = trainer.Stream() if genome.side_stream else None
        self.queue = [(step, *cut) for step in range(trainer.steps) for cut in self._cuts(step)]
        self.loaded: list[Any] = []
        self.works: dict[int, Any] = {}

    def run(self) -> None:
        """All steps."""
        genome, trainer = self.genome, self.trainer
        for _ in range(genome.ahead):
            self._load()
        for step in range(trainer.steps):
            for first, count in self._cuts(step):
                self._micro_batch(step, last=first + count == trainer.share)
                if genome.syncs:
                    trainer.synchronize()
            if not genome.lazy or trainer.ranks == 1:
                self._update_all()
            if genome.reads_each:
                trainer.read_loss(step)
        if genome.lazy and trainer.ranks > 1:
            self._update_all()
        trainer.read_losses()

    def _cuts(self, step: int) -> list[tuple[int, int]]:
        """Where each micro-batch of a step begins in the share, and its units."""
        genome = self.genome
        own = genome.first_cuts if step == 0 else genome.last_cuts if step == self.trainer.steps - 1 else ()
        cuts = own or genome.cuts
        return [(sum(cuts[:at]), count) for at, count in enumerate(cuts)]

    def _load(self) -> None:
        if not self.queue:
            return
        step, first, count = self.queue.pop(0)
        data = self.trainer.load(step, first, count, dtype=self.genome.dtype, pinned=self.genome.pinned)
        if self.copies is None:
            self.loaded.append((self.trainer.to_device(data, non_blocking=True), None))
            return
        with self.trainer.stream(self.copies):
            copied = self.trainer.to_device(data, non_blocking=True)
        event = self.trainer.Event()
        event.record(self.copies)
        self.loaded.append((copied, event))

    def _micro_batch(self, step: int, *, last: bool) -> None:
        genome, trainer = self.genome, self.trainer
        if not self.loaded:
            self._load()
        data, event = self.loaded.pop(0)
        if event is not None:
            event.wait()
        held: list[Any] = [data]
        for i in range(trainer.layers):
            if genome.lazy and i in self.works:
                self._settle(i)
            held.append(trainer.forward(i, held[-1], fused=genome.fused))
        gradient: Any = trainer.loss(step, held[-1], data)
        trainer.free(held.pop())
        for i in reversed(range(trainer.layers)):
            before = trainer.backward(i, held[i], gradient, fused=genome.fused)
            trainer.free(gradient, held.pop())
            gradient = before
            if last and i in genome.buckets and trainer.ranks > 1:
                end = min((at for at in genome.buckets if at > i), default=trainer.layers)
                work = trainer.all_reduce(i, end, async_op=genome.asynchronous)
                self.works[i] = (work, end)
        if genome.ahead:
            self._load()

    def _settle(self, first: int) -> None:
        work, end = self.works.pop(first)
        if work is not None:
            work.wait()
        self.trainer.update(first, end, fused=self.genome.fused_update)

    def _update_all(self) -> None:
        genome, trainer = self.genome, self.trainer
        if genome.whole_update or trainer.ranks == 1:
            for work, _ in self.works.values():
                if work is not None:
                    work.wait()
            self.works.clear()
            trainer.update(fused=genome.fused_update)
            return
        for first in list(self.works):
            self._settle(first)


def neighbours(genome: Genome, job: TrainingJob, rng: Any) -> list[Genome]:
    """Programs that differ from one in one respect, some of them drawn."""
    flags = (
        "pinned",
        "side_stream",
        "fused",
        "fused_update",
        "whole_update",
        "syncs",
        "reads_each",
        "asynchronous",
        "lazy",
    )
    flipped: list[dict[str, Any]] = [{flag: not getattr(genome, flag)} for flag in (*flags, "lazy")]
    found = [replace(genome, **one) for one in flipped]
    found += [replace(genome, ahead=ahead) for ahead in range(4)]
    found += [replace(genome, dtype=dtype) for dtype in ("uint8", "fp32")]
    found += [replace(genome, cuts=drawn_cuts(job, rng)) for _ in range(4)]
    found += [replace(genome, first_cuts=drawn_cuts(job, rng)), replace(genome, last_cuts=drawn_cuts(job, rng))]
    found += [replace(genome, buckets=drawn_buckets(job, rng)) for _ in range(4)]
    return found


def drawn_cuts(job: TrainingJob, rng: Any) -> tuple[int, ...]:
    """A drawn way to cut a share into micro-batches."""
    cuts, left = [], job.share
    while left:
        cuts.append(int(rng.integers(1, left + 1)))
        left -= cuts[-1]
    return tuple(cuts)


def drawn_buckets(job: TrainingJob, rng: Any) -> tuple[int, ...]:
    """Drawn places where buckets begin."""
    return (0, *(i for i in range(1, job.layers) if rng.random() < 0.5))


def drawn_genome(job: TrainingJob, rng: Any) -> Genome:
    """Any program of the family."""
    genome = Genome(drawn_cuts(job, rng), drawn_buckets(job, rng))
    for _ in range(6):
        options = neighbours(genome, job, rng)
        genome = options[int(rng.integers(len(options)))]
    return genome
