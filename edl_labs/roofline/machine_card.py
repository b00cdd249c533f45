"""The machine card: each ceiling beside its datasheet value, and the ridge points, as rows of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.hardware import Accelerator, accelerator
from edl_labs.roofline.machine_ceilings import Ceiling, Machine
from edl_labs.units import byte_count, byte_rate, flop_rate, percent, seconds
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class CardRow(Value):
    """One ceiling in words: measured with its interval, the datasheet's value, the share of it, how it was found."""

    name: str
    measured: str
    datasheet: str
    share: str
    note: str


def card(machine: Machine) -> tuple[CardRow, ...]:
    """Every ceiling of `machine` beside its datasheet (a dash where there is none), then ridge points and latency."""
    chip = accelerator(machine.hardware_key) if machine.hardware_key else None
    return (*_memory(machine, chip), *_products(machine, chip), *_links(machine, chip), *_ridges(machine))


def _memory(machine: Machine, chip: Accelerator | None) -> list[CardRow]:
    rows = []
    for level in machine.levels:
        size = "" if level is machine.memory else f", {byte_count(level.capacity_bytes)}"
        printed = chip.memory_bandwidth_byte_per_s if chip and level is machine.memory else None
        for pattern, ceiling in level.bandwidth.items():
            rows.append(_row(f"{level.name} {pattern}{size}", ceiling, printed, byte_rate))
    return rows


def _products(machine: Machine, chip: Accelerator | None) -> list[CardRow]:
    return [
        _row(f"{dtype} products", ceiling, _peak(chip, dtype), flop_rate) for dtype, ceiling in machine.matmul.items()
    ]


def _links(machine: Machine, chip: Accelerator | None) -> list[CardRow]:
    printed = chip.link_byte_per_s if chip else None
    return [_row(name, ceiling, printed, byte_rate) for name, ceiling in machine.links.items()]


def _ridges(machine: Machine) -> list[CardRow]:
    rows = []
    for dtype in machine.matmul:
        ridge = machine.ridge_flop_per_byte(dtype)
        rows.append(CardRow(f"ridge {dtype}", f"{ridge:.3g} FLOP/B", "–", "–", f"over {machine.memory.name}"))
    if machine.latency_s:
        rows.append(CardRow("smallest operation", seconds(machine.latency_s), "–", "–", "one of many in a row"))
    return rows


def _row(name: str, ceiling: Ceiling, printed: float | None, say: Any) -> CardRow:
    doubt = f" ± {percent(ceiling.half_width, digits=2)}" if ceiling.half_width else ""
    share = "–" if printed is None else percent(ceiling.rate / printed)
    return CardRow(name, f"{say(ceiling.rate)}{doubt}", "–" if printed is None else say(printed), share, ceiling.note)


def _peak(chip: Accelerator | None, dtype: str) -> float | None:
    return chip.peak_flop_per_s(dtype) if chip is not None and dtype in chip.dtypes() else None
