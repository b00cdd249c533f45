"""`predict_launch`: how long launches of tile programs would take on a GPU, and how far from the speed of light."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.predict.efficiencies import Efficiencies
from edl_labs.predict.kernel_times import KernelTimer, together
from edl_labs.predict.machine_card import MachineCard
from edl_labs.predict.step_predictor import interval
from edl_labs.units import byte_count, counted, percent, seconds
from edl_labs.values import Value
from edl_labs.virtual.tiles import LaunchRecord
from edl_labs.virtual.warp import SECTOR_BYTES

# Measured on an H100 with Triton 3.6 (benchmarks/README.md, "Launches on a GPU"), with kernels of 4 warps.
_START_S = 2.4e-6  # the start and the end of a launch, in a row of launches that a graph makes
_ROUND_S = 1.27e-6  # a program that loads, computes a little and stores: 65,536 of them with 64 elements each
_DOT_S = 0.2e-6  # beside its arithmetic, of a product that waits for its factors: loops of 16 to 96 products
_WAIT_S = 0.67e-6  # an access that waits for the one before, where a program's values do not fit in registers
_THREADS, _ACCESS_BYTES = 128, 16  # of a program: 4 warps, as Triton has it by default, with 16 bytes a thread
_PROGRAMS_AT_ONCE = 16  # on one SM: 2048 threads
_REGISTERS_BYTES, _MOST_OF_A_PROGRAM = 256 << 10, 255 * 4 * _THREADS  # of one SM; 255 registers a thread
_L2_SPEEDUP = 3.3  # of tiles that are read again, against DRAM: products in tiles of 32 and 64
_PARTIAL_WRITE = 5.5  # sectors read in the time in which one is written in part: a transposition by rows
# Streams over large tensors as a share of the datasheet: 3.06 TB/s on an H100, 4.05 on a H200 (steps' shares are lower,
# since they hold whatever else slows their kernels).
_STREAMS = {"HBM3": 0.91, "HBM3e": 0.84}
_SHARES_OF_MEMORY = 2  # of an even share that one SM can draw: about half of a GPU's SMs draw all that memory gives


@dataclass(frozen=True, repr=False)
class LaunchPrediction(Value):
    """Launches of tile programs on a GPU that need not be here.

    `low_s` to `high_s` hold the time in four cases of five, as far as steps of models tell; `high_s` holds the case too
    that nothing that is read again is found in the L2 cache. `bound_s` is the datasheet's roofline with each element
    moved once; `roofline_efficiency` is the share of it that the launches reach. `limiter` is "compute", "memory",
    "L2 cache", "latency" or "launch".
    """

    DERIVED = ("roofline_efficiency",)

    kernel: str
    machine: str
    dtype: str
    total_s: float
    low_s: float
    high_s: float
    bound_s: float
    limiter: str
    reason: str
    launches: int = 1

    @property
    def roofline_efficiency(self) -> float:
        """Share of the speed of light: `bound_s` divided by `total_s`."""
        return self.bound_s / self.total_s

    def __str__(self) -> str:
        many = f", {self.launches} launches" if self.launches > 1 else ""
        return (
            f"{self.kernel} on {self.machine}, {self.dtype}{many}: {seconds(self.total_s)} ({seconds(self.low_s)} to "
            f"{seconds(self.high_s)}), {percent(self.roofline_efficiency)} of the speed of light "
            f"({seconds(self.bound_s)}); limited by {self.limiter}: {self.reason}"
        )


@checked_arguments()
def predict_launch(
    *launches: LaunchRecord, machine: Any = "H100", efficiencies: Efficiencies | None = None
) -> LaunchPrediction:
    """What launches of `virtual.tiles` take on `machine`, one after the other, and their roofline efficiency.

    Each sector of 32 bytes comes from memory once and is found in the L2 cache when it is read again. Programs fill the
    multiprocessors in waves, a few of them do not draw all of the memory's rate, and many small ones are limited by
    latency: a program takes a microsecond, however little it does. Tensors are taken to be in memory, not in the L2
    cache, when a launch begins. Of `efficiencies`, the rates of products and of memories other than HBM3 count; a
    kernel's start and the L2 cache have constants of their own, which were measured. UsageError without a launch or a
    program, or for an unknown GPU.

    >>> import torch
    >>> from edl_labs.virtual.tiles import jit, tl
    >>> @jit
    ... def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
    >>> x = torch.ones(2**22)
    >>> found = predict_launch(double[(4096,)](x, torch.empty_like(x), 2**22, BLOCK=1024), machine="T4")
    >>> found.limiter, found.low_s < found.total_s < found.high_s
    ('memory', True)
    """
    if not launches:
        raise UsageError(
            "There is no launch to predict.",
            why="A prediction needs the record of a kernel launch.",
            next="Call predict_launch(kernel[grid](...), machine='H100')",
        )
    empty = [one.kernel for one in launches if not one.programs]
    if empty:
        raise UsageError(
            f"The grid of {empty[0]} has no program.",
            why="A launch without programs does nothing.",
            next="Launch it with a grid of at least one program",
        )
    card = MachineCard.of(machine)
    timer = KernelTimer(card, efficiencies or Efficiencies())
    each = [_predicted(one, timer) for one in launches]
    longest = max(each, key=lambda one: one.total_s)
    sums = {name: sum(getattr(one, name) for one in each) for name in ("total_s", "low_s", "high_s", "bound_s")}
    names = " + ".join(dict.fromkeys(one.kernel for one in each))
    return replace(longest, kernel=names, launches=len(each), **sums)


def _predicted(launch: LaunchRecord, timer: KernelTimer) -> LaunchPrediction:
    card, e = timer.card, timer.efficiencies
    compute_s, unit = _compute_s(launch, timer)
    once = SECTOR_BYTES * sum(one.read_once_sectors + one.written_once_sectors for one in launch.tensors)
    once += _filled(launch)
    touched = SECTOR_BYTES * sum(one.read_sectors + one.written_sectors for one in launch.tensors)
    needed = sum(one.item_bytes * (one.read_once_elements + one.written_once_elements) for one in launch.tensors)
    drawn = min(1.0, _SHARES_OF_MEMORY * launch.programs / card.sm_count)
    rate = _stream_byte_per_s(card, e) * drawn
    at_cache = touched + (_PARTIAL_WRITE - 1) * _written_in_part(launch)
    memory_s, cache_s = once / rate, at_cache / (rate * _L2_SPEEDUP)
    missed_s = max(touched, once) / rate
    rounds_s, rounds = _rounds_s(launch, timer, compute_s)
    start_s = (card.kernel_floor_s or _START_S) + _ROUND_S
    waiting_s = max(0.0, rounds_s - _ROUND_S)
    body_s = max(together(compute_s, max(memory_s, cache_s), e.overlap), waiting_s)
    total_s = body_s + start_s
    works = {"product" if launch.dot_flops else "bytes": body_s, "launch": start_s}
    low_s, high_s = interval(total_s, works)
    high_s = max(high_s, together(compute_s, missed_s, e.overlap) + start_s)
    limits = [
        (compute_s, "compute", f"{counted(launch.programs, 'program')} on {card.sm_count} SMs, {unit} cores"),
        (memory_s, "memory", f"{byte_count(once)}, counting each sector once{_few(drawn)}"),
        (
            cache_s,
            "L2 cache",
            f"{byte_count(touched)} of sectors, {touched / max(needed, 1):.3g} times the bytes needed",
        ),
        (waiting_s - compute_s, "latency", rounds),
        (start_s, "launch", "it is shorter than the time to start and end a kernel"),
    ]
    _, limiter, reason = max(limits)
    return LaunchPrediction(
        kernel=launch.kernel, machine=card.key, dtype=launch.dtype, total_s=total_s, low_s=low_s, high_s=high_s,
        bound_s=_bound_s(launch, card, needed), limiter=limiter, reason=reason,
    )  # fmt: skip


def _few(drawn: float) -> str:
    return f"; with so few programs, only {percent(drawn)} of the rate is reached" if drawn < 1 else ""


def _stream_byte_per_s(card: MachineCard, efficiencies: Efficiencies) -> float:
    share = _STREAMS.get(card.memory_kind)
    if share is None or card.stream_measured_byte_per_s:
        return card.stream_byte_per_s(efficiencies)
    return card.memory_byte_per_s * share


def _written_in_part(launch: LaunchRecord) -> float:
    """Bytes of sectors of which a store writes a part, beyond those of whole sectors."""
    return sum(
        max(0, SECTOR_BYTES * one.written_sectors - one.item_bytes * one.written_elements) for one in launch.tensors
    )


def _filled(launch: LaunchRecord) -> int:
    """Bytes of sectors of which the whole launch writes a part: the rest of each is read from memory."""
    whole = [(one, one.written_once_sectors * SECTOR_BYTES // one.item_bytes) for one in launch.tensors]
    gaps = [(one.written_once_sectors, elements - one.written_once_elements) for one, elements in whole]
    return SECTOR_BYTES * sum(max(0, min(sectors, missing)) for sectors, missing in gaps)


def _rounds_s(launch: LaunchRecord, timer: KernelTimer, compute_s: float) -> tuple[float, str]:
    """Seconds for programs that each wait for memory and for their own products, as many at once as fit."""
    sm_count = timer.card.sm_count
    held = max(launch.live_bytes, _REGISTERS_BYTES // _PROGRAMS_AT_ONCE)
    at_once = max(1, _REGISTERS_BYTES // held)
    rounds = max(1.0, launch.programs / (sm_count * at_once))
    said = f"{rounds:.3g} rounds of programs, {at_once} at a time per SM"
    own_s, dots = compute_s / launch.waves(sm_count), launch.dots / launch.programs
    mean_s = _ROUND_S + _DOT_S * dots + own_s
    # Factors of a product lie in shared memory, and it is added up in place: half of what is live is in registers.
    held_most = _MOST_OF_A_PROGRAM * (2 if launch.dot_flops else 1)
    if launch.live_bytes > held_most:
        accesses = launch.moved_bytes / launch.programs / (_THREADS * _ACCESS_BYTES)
        mean_s += (1 - held_most / launch.live_bytes) * accesses * _WAIT_S
        said = (
            f"a program needs {launch.live_bytes:,} B, but has registers for {held_most:,} B, so its accesses wait "
            "for each other"
        )
    # The program with the most products may be the last to begin.
    most_s = _ROUND_S + _DOT_S * launch.most_dots + own_s * launch.most_dots / dots if dots else 0.0
    if most_s > rounds * mean_s:
        said = f"one program computes {launch.most_dots} products, and the mean is {dots:.3g}"
    return max(rounds * mean_s, most_s), said


def _dot_dtype(launch: LaunchRecord) -> str:
    return "tf32" if launch.tf32_lines else launch.dtype


def _compute_s(launch: LaunchRecord, timer: KernelTimer) -> tuple[float, str]:
    """Seconds of arithmetic with waves that are not full, and the unit that most of it runs on."""
    e = timer.efficiencies
    waves = launch.waves(timer.card.sm_count) * timer.card.sm_count / launch.programs
    rate, unit = timer.rate(_dot_dtype(launch))
    dot_s = waves * launch.dot_flops / (rate * (e.ordinary if unit == "tensor" else e.ordinary_fp32))
    # A rate counts a multiply-add as two operations; other arithmetic is one operation an instruction.
    other_s = waves * 2 * launch.other_flops / timer.rate("fp32")[0]
    # The next product waits for what the arithmetic makes of the one before.
    return dot_s + other_s, unit if dot_s >= other_s else "CUDA"


def _bound_s(launch: LaunchRecord, card: MachineCard, once_bytes: int) -> float:
    unit, peak = card.peak(_dot_dtype(launch))
    dot_s, other_s = launch.dot_flops / peak, launch.other_flops / card.peak("fp32")[1]
    compute_s = max(dot_s, other_s) if unit == "tensor" else dot_s + other_s
    return max(compute_s, once_bytes / card.memory_byte_per_s)
