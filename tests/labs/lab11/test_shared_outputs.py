"""column_sums: both honest ways pass; tile_order: groups read fewer strips."""

from __future__ import annotations

import json

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.column_kernels import ColumnSums
from edl_labs.exercises.lab11_tiles.tile_orders import strips_of

CASE = {"rows": 203, "columns": 45, "BM": 64, "BN": 32, "seed": 3}
PARTIAL = """
@jit
def partial_kernel(x_ptr, part_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(part_ptr + tl.program_id(0) * N + columns, tl.sum(x, axis=0), mask=columns < N)


@jit
def total_kernel(part_ptr, y_ptr, parts, N, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.float32)
    for part in range(parts):
        total += tl.load(part_ptr + part * N + columns, mask=columns < N, other=0.0)
    tl.store(y_ptr + columns, total, mask=columns < N)
"""


def two_passes(source: str = PARTIAL) -> dict[str, object]:
    """Evidence of partial sums in a buffer, and of a second kernel that adds them."""

    def tensor(name: str) -> dict[str, str]:
        return {"tensor": name}

    def allocated(name: str, elements: int) -> dict[str, object]:
        return {"name": name, "elements": elements, "dtype": "float32", "zeros": False}

    first = [tensor("x"), tensor("part"), 203, 45]
    second = [tensor("part"), tensor("y"), 4, 45]
    launches = [
        {"kernel": "partial_kernel", "grid": [4, 2], "arguments": first, "named": {"BM": 64, "BN": 32}},
        {"kernel": "total_kernel", "grid": [2], "arguments": second, "named": {"BN": 32}},
    ]
    made = [allocated("part", 180), allocated("y", 45)]
    program = {"allocated": made, "launches": launches, "returned": "y"}
    return {"source": [source], "ran": [source], "program": json.dumps(program)}


def test_partial_sums_and_a_second_kernel_are_right() -> None:
    ColumnSums().compare(CASE, two_passes(), {})


def test_a_second_kernel_that_leaves_out_a_part_is_wrong() -> None:
    with pytest.raises(Wrong, match="Your sums leave out the last rows"):
        ColumnSums().compare(CASE, two_passes(PARTIAL.replace("range(parts)", "range(parts - 1)")), {})


def test_a_square_of_tiles_reads_fewer_strips_than_a_row() -> None:
    assert (10, 6) == (strips_of([(0, i) for i in range(9)]), strips_of([(i // 3, i % 3) for i in range(9)]))
