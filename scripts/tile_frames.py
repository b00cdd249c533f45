"""The pictures of the tiles explorer. For each setting, `virtual.tiles` runs a kernel while the site is built.

Python in the browser has no NumPy here, so the page evaluates nothing and contains the pictures of all settings.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from edl_labs.roofline import Machine, attainable_flop_per_s, count_tiles
from edl_labs.units import byte_count, flop_rate
from edl_labs.virtual.tiles import LaunchRecord, TensorTraffic, evaluate, parse_kernels

ROWS, COLUMNS, DEPTH, STEP = 256, 384, 128, 32
_SIDES = [16, 32, 64, 128]
CONTROLS: dict[str, list[tuple[str, str, list[Any], str, int]]] = {
    "tiles": [
        ("chip", "GPU", ["T4", "A100", "H100"], "choice", 2),
        ("bm", "rows of a tile", _SIDES, "", 1),
        ("bn", "columns of a tile", _SIDES, "", 1),
    ],
}
_SOURCE = """
@jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a_ptr + row * K + start + tl.arange(0, BK)[None, :])
        right = tl.load(b_ptr + (start + tl.arange(0, BK)[:, None]) * N + column)
        total = tl.dot(left, right, total)
    tl.store(c_ptr + row * N + column, total.to(tl.float16))
"""


@cache
def launched(bm: int, bn: int) -> LaunchRecord:
    """The record of C = A·B in fp16, in tiles of `bm` × `bn`; every size is a multiple of every tile."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS)))
    c = np.zeros((ROWS, COLUMNS), np.float16)
    sizes = {"M": ROWS, "N": COLUMNS, "K": DEPTH, "BM": bm, "BN": bn, "BK": STEP}
    grid = (ROWS // bm, COLUMNS // bn)
    return evaluate(parse_kernels(_SOURCE), "product", grid, {"a_ptr": a, "b_ptr": b, "c_ptr": c, **sizes})


def tiles(*, chip: str, bm: int, bn: int) -> dict[str, Any]:
    """What one program of a product touches, and how far up the roof the kernel may come if nothing is cached."""
    record, machine = launched(bm, bn), Machine.of(chip)
    work = count_tiles(record)
    least = sum(one.item_bytes * (one.read_once_elements + one.written_once_elements) for one in record.tensors)
    ridge = machine.peak_flop_per_s("fp16") / machine.memory.ceiling().rate
    intensity = work.intensity_flop_per_byte
    reached = attainable_flop_per_s(machine, intensity, dtype="fp16")
    told = (
        f"{record.programs} programs move {byte_count(work.moved_bytes)}, the minimum is {byte_count(least)}; "
        f"{intensity:.3g} FLOP/B, the ridge is at {ridge:.3g}: without a cache, at most {flop_rate(reached)}; "
        f"each program keeps {byte_count(record.live_bytes)} of blocks"
    )
    most = max(one.moved_bytes for one in launched(_SIDES[0], _SIDES[0]).tensors)
    bars = [[one.name[0].upper(), one.moved_bytes, times(one)] for one in record.tensors]
    return {"told": told, "sizes": [ROWS, COLUMNS, DEPTH], "tile": [bm, bn], "bars": bars, "most_bytes": most}


def times(tensor: TensorTraffic) -> int:
    """How often each element is read or written."""
    return tensor.moved_bytes // (tensor.item_bytes * (tensor.read_once_elements + tensor.written_once_elements))
