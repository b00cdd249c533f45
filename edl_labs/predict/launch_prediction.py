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

_SHARES_OF_MEMORY = 2  # of an even share that one SM can draw: about half of a GPU's SMs draw all that memory gives


@dataclass(frozen=True, repr=False)
class LaunchPrediction(Value):
    """Launches of tile programs on a GPU that need not be here.

    `low_s` to `high_s` hold the time in four cases of five, as far as steps of models tell (no tile program was
    measured for it); `high_s` also holds the case that nothing that is read again is found in the L2 cache. `bound_s`
    is the datasheet's roofline with each element moved once; `light` is the share of it that the launches reach.
    """

    DERIVED = ("light",)

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
    def light(self) -> float:
        """Share of the speed of light: `bound_s` divided by `total_s`."""
        return self.bound_s / self.total_s

    def __str__(self) -> str:
        many = f", {self.launches} launches" if self.launches > 1 else ""
        return (
            f"{self.kernel} on {self.machine}, {self.dtype}{many}: {seconds(self.total_s)} ({seconds(self.low_s)} to "
            f"{seconds(self.high_s)}), {percent(self.light)} of the speed of light ({seconds(self.bound_s)}); "
            f"limited by {self.limiter}: {self.reason}"
        )


@checked_arguments()
def predict_launch(
    *launches: LaunchRecord, machine: Any = "H100", efficiencies: Efficiencies | None = None
) -> LaunchPrediction:
    """What launches of `virtual.tiles` take on `machine`, one after the other, and which share of light they reach.

    Each element comes from memory once and is found in the L2 cache when it is read again; every access moves whole
    sectors of 32 bytes. Programs fill the multiprocessors in waves, and a few of them do not draw all of the memory's
    rate. UsageError without a launch, or for an unknown GPU.

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
            why="A prediction needs a kernel's record.",
            next="Call predict_launch(kernel[grid](...), machine='H100')",
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
    once = sum(one.item_bytes * (one.read_once_elements + one.written_once_elements) for one in launch.tensors)
    touched = SECTOR_BYTES * sum(one.read_sectors + one.written_sectors for one in launch.tensors)
    drawn = min(1.0, _SHARES_OF_MEMORY * launch.programs / card.sm_count)
    rate = card.stream_byte_per_s(e) * drawn
    memory_s, cache_s, missed_s = once / rate, touched / (rate * e.l2_speedup), max(touched, once) / rate
    floor_s = card.kernel_floor_s or e.kernel_s
    body_s = together(compute_s, max(memory_s, cache_s), e.overlap)
    total_s = body_s + floor_s
    works = {"product" if launch.dot_flops else "bytes": body_s, "launch": floor_s}
    low_s, high_s = interval(total_s, works)
    high_s = max(high_s, together(compute_s, missed_s, e.overlap) + floor_s)
    limits = [
        (compute_s, "compute", f"{counted(launch.programs, 'program')} on {card.sm_count} SMs, {unit} cores"),
        (memory_s, "memory", f"{byte_count(once)}, each byte once{_few(drawn)}"),
        (cache_s, "L2 cache", f"{byte_count(touched)} in sectors, {touched / max(once, 1):.3g} times what is needed"),
        (floor_s, "launch", "shorter than a kernel's own start and end"),
    ]
    _, limiter, reason = max(limits)
    return LaunchPrediction(
        kernel=launch.kernel, machine=card.key, dtype=launch.dtype, total_s=total_s, low_s=low_s, high_s=high_s,
        bound_s=_bound_s(launch, card, once), limiter=limiter, reason=reason,
    )  # fmt: skip


def _few(drawn: float) -> str:
    return f"; too few programs draw {percent(drawn)} of the rate" if drawn < 1 else ""


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
    if unit == "tensor":
        return (dot_s, unit) if dot_s >= other_s else (other_s, "CUDA")
    return dot_s + other_s, "CUDA"


def _bound_s(launch: LaunchRecord, card: MachineCard, once_bytes: int) -> float:
    unit, peak = card.peak(_dot_dtype(launch))
    dot_s, other_s = launch.dot_flops / peak, launch.other_flops / card.peak("fp32")[1]
    compute_s = max(dot_s, other_s) if unit == "tensor" else dot_s + other_s
    return max(compute_s, once_bytes / card.memory_byte_per_s)
