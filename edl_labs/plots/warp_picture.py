"""The picture of a warp's accesses: the lines of global memory with their sectors, and the banks of shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREY, HATCHING, ON_COLOUR, ORANGE, RED, TEXT, dress
from edl_labs.virtual.warp.memory_requests import BANK_BYTES, BANKS, LINE_BYTES, SECTOR_BYTES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.virtual.warp import WarpReplay, WarpRequest

_PLACES = 32  # across the picture: banks, or lines, of which a request of four-byte elements touches no more
_SECTORS = LINE_BYTES // SECTOR_BYTES
_HEIGHT = 0.7  # of a row: the rest is the gap to the next one
_ROWS = 12  # more would be too thin to read


def draw_warp(axes: Axes, replay: WarpReplay, *, block: int = 0, warp: int = 0, title: str = "") -> Axes:
    """What one warp asks of memory, one row a place in the kernel: the first request of each.

    Global memory: a box is a line of 128 bytes, in order of address; of its four sectors those are drawn that are
    moved, filled as far as the warp uses their bytes. Shared memory: a box is a bank, with the words asked of it.
    """
    rows: dict[tuple[Any, ...], WarpRequest] = {}
    for one in replay.requests:
        if (one.block, one.warp) == (block, warp):
            rows.setdefault((one.launch, one.pc, one.op, one.array), one)
    shown = [rows[key] for key in sorted(rows)][:_ROWS]
    for row, one in enumerate(shown):
        (_banks if one.is_shared else _lines)(axes, row, one)
    has_lines, has_banks = (any(one.is_shared == shared for one in shown) for shared in (False, True))
    for name, colour, hatch, is_there in (
        ("bytes used (height: their share of each sector)", BLUE, "", has_lines),
        ("bytes moved but not used", ORANGE, "//", any(one.sectors > one.least_sectors for one in shown)),
        ("requested bank", BLUE, "", has_banks and not has_lines),
        ("bank conflict", RED, "xx", any(one.wavefronts > one.least_wavefronts for one in shown)),
    ):
        if not is_there:
            continue
        axes.barh([0], [0], color=colour, hatch=hatch, edgecolor=HATCHING, label=name)
    axes.set(yticks=range(len(shown)), yticklabels=[_label(one) for one in shown], ylim=(len(shown) - 0.4, -0.6))
    axes.set(xlim=(0, _PLACES), xticks=range(0, _PLACES + 1, 8))
    lines, banks = "accessed lines of 128 bytes", "banks"
    both = f"rows of global memory: {lines}; rows of shared memory: {banks}"
    axes.set_xlabel(both if has_lines and has_banks else f"{banks} of shared memory" if has_banks else lines)
    axes.set_title(title or f"Memory requests of warp {warp} of block {block}")
    look: dict[str, Any] = {"ncols": 3, "fontsize": "small", "frameon": False, "labelcolor": TEXT}
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), **look)
    return dress(axes)


def _label(one: WarpRequest) -> str:
    name = f"line {one.line}: {one.op.replace('_', ' ')} {one.array}"
    if one.is_shared:
        return f"{name}\nwavefronts {one.wavefronts}, best {one.least_wavefronts}"
    return f"{name}\nsectors {one.sectors}, best {one.least_sectors}"


def _lines(axes: Axes, row: int, one: WarpRequest) -> None:
    used: dict[int, set[int]] = {}
    for address in one.addresses:
        for byte in range(address, address + one.itemsize):
            used.setdefault(byte // SECTOR_BYTES, set()).add(byte)
    lines = sorted({sector // _SECTORS for sector in used})[:_PLACES]
    width = 1 / _SECTORS
    for place, line in enumerate(lines):
        axes.barh(row, 1, left=place, height=_HEIGHT, color="none", edgecolor=GREY, linewidth=0.8)
        for sector in range(line * _SECTORS, (line + 1) * _SECTORS):
            left = place + (sector - line * _SECTORS) * width
            if sector in used:
                full = _HEIGHT * len(used[sector]) / SECTOR_BYTES
                bottom = row + _HEIGHT / 2
                wasted: dict[str, Any] = {"color": ORANGE, "hatch": "//", "edgecolor": HATCHING, "linewidth": 0}
                axes.bar(left, -_HEIGHT, width=width, bottom=bottom, align="edge", **wasted)
                axes.bar(left, -full, width=width, bottom=bottom, align="edge", color=BLUE)


def _banks(axes: Axes, row: int, one: WarpRequest) -> None:
    words: list[set[int]] = [set() for _ in range(BANKS)]
    for address in one.addresses:
        for word in range(address // BANK_BYTES, (address + one.itemsize - 1) // BANK_BYTES + 1):
            words[word % BANKS].add(word)
    least = max(1, one.least_wavefronts)
    for bank, found in enumerate(words):
        look: dict[str, Any] = {"color": "none", "edgecolor": GREY, "linewidth": 0.8}
        if found:
            is_fought_for = len(found) > least
            look |= {"color": RED if is_fought_for else BLUE, "hatch": "xx" if is_fought_for else ""}
            look["edgecolor"] = ON_COLOUR
        axes.barh(row, 1, left=bank, height=_HEIGHT, **look)
        if len(found) > 1:
            box = {"facecolor": RED if len(found) > least else BLUE, "edgecolor": "none", "pad": 1.0}
            axes.text(bank + 0.5, row, str(len(found)), ha="center", va="center", color=ON_COLOUR, fontsize=7, bbox=box)


__all__ = ["draw_warp"]
