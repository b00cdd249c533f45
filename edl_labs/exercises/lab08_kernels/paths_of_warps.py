"""warp_paths: instructions issued by warps whose threads take different paths, and an order that issues the fewest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.virtual.warp import LANES


@exercise("warp_paths")
class WarpPaths:
    """`issued` for given paths, and `sorted_paths`, an order in which no warp has two of them."""

    def probe(self, student: Any, case: Any) -> Any:
        def given() -> Any:
            return [*case["paths"]], {**case["lengths"]}, case["block"]

        order = student.sorted_paths(*given()) if case["can_be_sorted"] else []
        return {"issued": student.issued(*given()), "order": order}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["issued"] != want["issued"]:
            why = f"{got['issued']} for {want['issued']}"
            raise Wrong(
                "warps issue another number of instructions", why=why, next="each warp: its different paths, once each"
            )
        if not case["can_be_sorted"]:
            return
        if sorted(got["order"]) != list(range(len(case["paths"]))):
            why = f"{len(got['order'])} numbers for {len(case['paths'])} elements"
            raise Wrong("the order does not have every element once", why=why, next="the numbers of elements, from 0")
        ordered = [case["paths"][number] for number in got["order"]]
        mixed = [at for at in range(0, len(ordered), LANES) if len(set(ordered[at : at + LANES])) > 1]
        if mixed:
            why = f"warp {mixed[0] // LANES} has {len(set(ordered[mixed[0] : mixed[0] + LANES]))} paths"
            raise Wrong("in this order some warps still take several paths", why=why, next="bring equal paths together")

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The rule that gives all counts."""
        if all(one["issued"] == other["issued"] for one, other in zip(got, want, strict=True)):
            return None
        for rule, what, why, then in _RULES:
            if all(one["issued"] == rule(case) for one, case in zip(got, cases, strict=True)):
                return Wrong(what, why=f"{why} in all cases", next=then)
        return None

    def show(self, case: Any) -> str:
        """Paths with their lengths, and blocks."""
        paths = case["paths"]
        counts = ", ".join(f"{name}: {paths.count(name)} of {length}" for name, length in case["lengths"].items())
        return f"{len(paths)} elements in blocks of {case['block']}; {counts} instructions"


def _per_warp(case: Any, count: Callable[[list[int]], int], *, within: int = 0) -> int:
    """The sum over warps of what `count` makes of their threads' lengths; warps begin anew with each block."""
    lengths = [case["lengths"][name] for name in case["paths"]]
    block = within or case["block"]
    parts = [lengths[at : at + block] for at in range(0, len(lengths), block)]
    return sum(count(part[at : at + LANES]) for part in parts for at in range(0, len(part), LANES))


_RULES: tuple[tuple[Callable[[Any], int], str, str, str], ...] = (
    (
        lambda case: _per_warp(case, max),
        "a warp issues all of its paths, not the longest alone",
        "the longest path of each warp was counted",
        "one after the other",
    ),
    (
        lambda case: _per_warp(case, sum),
        "a warp issues a path once for all its threads",
        "every thread's path was counted",
        "threads of one path go together",
    ),
    (
        lambda case: _per_warp(case, min),
        "a warp issues all of its paths, not the shortest alone",
        "the shortest path of each warp was counted",
        "one after the other",
    ),
    (
        lambda case: _per_warp(case, lambda part: sum(set(part)), within=LANES),
        "warps begin anew with each block",
        "32 elements in a row were a warp across blocks",
        "the last warp of a block may be short",
    ),
    (
        lambda case: _by_block(case),
        "paths differ within a warp, not within a block",
        "every warp issued all paths of its block",
        "a warp skips what none of its threads takes",
    ),
)


def _by_block(case: Any) -> int:
    total, paths, block = 0, case["paths"], case["block"]
    for at in range(0, len(paths), block):
        mine = paths[at : at + block]
        total += sum(case["lengths"][name] for name in set(mine)) * -(-len(mine) // LANES)
    return total
