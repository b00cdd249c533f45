"""coalesced: a transposition through shared memory, judged by what its warps ask and where elements come from."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.kernel_programs import (
    replayed_kernels,
    require_launch,
    require_order,
    require_whole_barriers,
    written_kernels,
)
from edl_labs.units import counted
from edl_labs.virtual.warp import LANES, SECTOR_BYTES, AccessSummary, VirtualWarp, WarpReplay

MOST_SECTORS = 1.05  # of what there is to move, promised in the lab's text
ITEMSIZES = {"float32": 4, "float64": 8}
_HOLDING = {"float32": ("float32", "float64"), "float64": ("float64",)}  # the types that keep every bit of an element
_KEPT = 0.5  # of the points, for a transposition that is right and coalesced, and whose tile has bank conflicts


@exercise("coalesced")
class CoalescedTranspose(Exercise):
    """`transpose(gpu, src, dst)` launches kernels on a VirtualWarp; the evidence is what their threads did."""

    answers = "all"

    answer_form: ClassVar[Any] = {"program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        gpu = VirtualWarp()
        src = gpu.array("src", (given["rows"], given["columns"]), given["dtype"])
        dst = gpu.array("dst", (given["columns"], given["rows"]), given["dtype"])
        student.transpose(gpu, src, dst)
        return {"program": written_kernels(gpu)}

    def public_want(self, case: Any, want: Any) -> Any:
        """The sectors that there are to move: the program would be the answer."""
        return {"sectors": _least(case)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = replayed_kernels(got["program"], _arrays(case))
        require_launch(run)
        require_order(run)
        _judge_contents(case, run)
        _judge_types(case, run)
        require_whole_barriers(run)
        if run.sectors > MOST_SECTORS * _least(case):
            raise _sector_symptom(case, run)
        if run.bank_conflicts:
            raise _bank_symptom(run)

    def format_case(self, case: Any) -> str:
        """The matrix."""
        return f"src of {case['rows']} x {case['columns']} {case['dtype']}"

    def format_answer(self, case: Any, got: Any) -> str:
        """What a profiler would say of it."""
        run = replayed_kernels(got["program"], _arrays(case))
        return "; ".join(map(str, run.accesses[:4]))


def _bank_symptom(run: WarpReplay) -> Wrong:
    worst = max(run.accesses, key=lambda one: one.bank_conflicts)
    why = f"{worst}: {_turns(worst)}"
    launch = _launches(run)[worst.launch]
    wide = launch["block"][0]
    then = "in which bank is tile[y, x]? Let rows of the tile begin in different banks"
    if wide < LANES:
        why = f"a warp is {-(-LANES // wide)} rows of {wide} threads; {why}"
        then = "in which banks are the elements that a warp requests? In a block 32 wide, a warp is one row of threads"
    for (*rows, columns), dtype in launch["shared"]:
        word = columns * ITEMSIZES.get(dtype, 4) // 4
        banks = len({row * word % LANES for row in range(rows[0])}) if len(rows) == 1 else LANES
        if len(rows) == 1 and banks < min(rows[0], LANES):
            column = f"the {rows[0]} elements of a column are in only {counted(banks, 'bank')}"
            why = f"{why}; with rows of {columns} elements ({dtype}), {column}"
            then = "in which bank is tile[y, x]? Let longer rows of the tile begin in different banks"
            what = "in your tile, elements of a column are in the same banks of shared memory"
            return Wrong(what, why=why, next=then, keeps=_KEPT)
    return Wrong(
        "in your kernel, threads of a warp access the same bank of shared memory", why=why, next=then, keeps=_KEPT
    )


def _launches(run: WarpReplay) -> list[dict[str, Any]]:
    return [entry for entry in run.program if entry["op"] == "launch"]


def _judge_types(case: Any, run: WarpReplay) -> None:
    """Shared memory keeps every bit of an element."""
    for entry in _launches(run):
        for _, dtype in entry["shared"]:
            if dtype not in _HOLDING[case["dtype"]]:
                why = f"the elements are {case['dtype']}, but the shared array is {dtype}"
                then = "give the tile the type of its elements, src.dtype"
                raise Wrong("your kernel rounds elements in shared memory", why=why, next=then)


def _arrays(case: Any) -> dict[str, tuple[list[int], str]]:
    shape = [case["rows"], case["columns"]]
    return {"src": (shape, case["dtype"]), "dst": (shape[::-1], case["dtype"])}


def _least(case: Any) -> int:
    return 2 * case["rows"] * case["columns"] * ITEMSIZES[case["dtype"]] // SECTOR_BYTES


def _turns(worst: AccessSummary) -> str:
    return f"{worst.wavefronts / worst.least_wavefronts:.3g} times as many wavefronts as needed"


def _judge_contents(case: Any, run: WarpReplay) -> None:
    """Every element of dst is the one of src that belongs there."""
    rows, columns = case["rows"], case["columns"]
    found = run.contents("dst")
    due = [("src", y * columns + x) for x in range(columns) for y in range(rows)]
    bad = [at for at, pair in enumerate(zip(found, due, strict=True)) if pair[0] != pair[1]]
    if not bad:
        return
    x, y = divmod(bad[0], rows)
    place, source = f"dst[{x}, {y}]", found[bad[0]]
    why = (
        f"{place} is {_named(source, columns)}, but should be {_named(due[bad[0]], columns)}; in all, "
        f"dst has {counted(len(bad), 'wrong element')}"
    )
    if all(found[at] == ("dst", at) for at in bad):
        written = [divmod(at, rows) for at in set(range(len(found))) - set(bad)] or [(-1, -1)]
        short = max(columns - 1 - max(x for x, _ in written), rows - 1 - max(y for _, y in written))
        if short >= LANES:
            why = f"{why}; the last {short} rows or columns of dst are left out"
            then = "compute the grid from src.shape: one block for each tile"
            raise Wrong("your grid does not cover all of a larger matrix", why=why, next=then)
        then = "do the last blocks and their last threads reach the last rows and columns?"
        raise Wrong("your kernel never writes some elements of dst", why=why, next=then)
    if source[0] == "nothing":
        then = "which thread should have written that element of the tile?"
        raise Wrong("your kernel reads an element of shared memory before it is written", why=why, next=then)
    if _is_tile_kept(found, due, bad, columns):
        then = "transpose both: the tile at (x, y) of src becomes the tile at (y, x) of dst, and so do its elements"
        raise Wrong(
            "your kernel transposes elements within their tiles, but it does not transpose the tiles",
            why=why,
            next=then,
        )
    raise Wrong(
        "in your kernel, elements of dst come from the wrong positions in src",
        why=why,
        next="follow one element by hand, at an edge",
    )


def _is_tile_kept(found: list[Any], due: list[Any], bad: list[int], columns: int) -> bool:
    """Whether every wrong element comes from somewhere in src, though not a single one from its own tile."""
    copied = all(found[at][0] == "src" for at in bad)
    return copied and len(bad) < len(found) and all(_tile(found[at], columns) != _tile(due[at], columns) for at in bad)


def _tile(source: Any, columns: int) -> tuple[int, int]:
    y, x = divmod(source[1], columns)
    return y // 32, x // 32


def _named(source: Any, columns: int) -> str:
    if source[0] == "src":
        y, x = divmod(source[1], columns)
        return f"src[{y}, {x}]"
    if source[0] == "dst":
        return "unchanged"
    return "undefined" if source[0] == "nothing" else str(source)


def _sector_symptom(case: Any, run: WarpReplay) -> Wrong:
    moving = [one for one in run.accesses if not one.is_shared]
    why = f"{run.sectors} sectors are moved, but {_least(case)} would be enough"
    half = _least(case) / 2
    reads = sum(one.sectors for one in moving if one.op == "load") > MOST_SECTORS * half
    writes = sum(one.sectors for one in moving if one.op != "load") > MOST_SECTORS * half
    for one in moving:
        if one.sectors > MOST_SECTORS * one.least_sectors:
            why = f"{why}; {one}"
            break
    if reads and writes:
        then = "use threadIdx.x for the last index of both src and dst: neighbours in a warp differ in threadIdx.x"
        return Wrong("your kernel scatters both its reads of src and its writes of dst", why=why, next=then)
    if reads:
        return Wrong("your kernel scatters its reads of src", why=why, next="let each warp read along a row of src")
    then = "let each warp read from the tile, and write along a row of dst"
    return Wrong("your kernel scatters its writes of dst", why=why, next=then)
