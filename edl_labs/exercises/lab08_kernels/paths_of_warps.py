"""warp_paths: instructions issued by warps whose threads take different paths, and an order that issues the fewest."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import digest, named_slip
from edl_labs.virtual.warp import LANES


@exercise("warp_paths")
class WarpPaths(Exercise):
    """`issued` for given paths, and `sorted_paths`, an order in which no warp has two of them."""

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        def fresh() -> Any:
            return [*given["paths"]], {**given["lengths"]}, given["block"]

        order = student.sorted_paths(*fresh()) if given["can_be_sorted"] else []
        return {"issued": student.issued(*fresh()), "order": order}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["issued"] != want["issued"]:
            last = min(case["block"], len(case["paths"]))
            warps = [(at, min(at + LANES, last)) for at in range(0, last, LANES)]
            parts = " and ".join(_issued_by(case, *one) for one in dict.fromkeys((warps[0], warps[-1])))
            why = f"{got['issued']} for {want['issued']}; of the first block, {parts}"
            then = "count such a warp by hand: its different paths, once each; a block's last warp ends with the block"
            raise Wrong("warps issue another number of instructions", why=why, next=then)
        if not case["can_be_sorted"]:
            return
        if sorted(got["order"]) != list(range(len(case["paths"]))):
            why = f"{len(got['order'])} numbers for {len(case['paths'])} elements"
            raise Wrong("the order does not have every element once", why=why, next="the numbers of elements, from 0")
        if _mixed(case, got["order"]):
            raise _unsorted(case, got["order"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The slip that gives all counts."""
        if all(one["issued"] == other["issued"] for one, other in zip(got, want, strict=True)):
            return None
        return named_slip(cases, [digest([one["issued"]]) for one in got], SAID)

    def student_inputs(self, case: Any) -> Any:
        """What both functions are given."""
        return {"paths": case["paths"], "lengths": case["lengths"], "block": case["block"]}

    def format_case(self, case: Any) -> str:
        """Paths with their lengths, and blocks."""
        paths = case["paths"]
        counts = ", ".join(f"{name}: {paths.count(name)} of {length}" for name, length in case["lengths"].items())
        return f"{len(paths)} elements in blocks of {case['block']}; {counts} instructions"


def _issued_by(case: Any, first: int, stop: int) -> str:
    """What one warp issues, in words."""
    count = sum(case["lengths"][name] for name in {*case["paths"][first:stop]})
    return f"threads {first} to {stop - 1} issue {count}"


def _mixed(case: Any, order: list[int]) -> list[int]:
    """The first place of each warp that takes several paths in this order."""
    paths = [case["paths"][number] for number in order]
    return [at for at in range(0, len(paths), LANES) if len(set(paths[at : at + LANES])) > 1]


def _unsorted(case: Any, order: list[int]) -> Wrong:
    """Why warps of an order still take several paths."""
    first, block = _mixed(case, order)[0], case["block"]
    why = f"warp {first // LANES} has {len({case['paths'][number] for number in order[first : first + LANES]})} paths"
    if not _mixed(case, sorted(range(len(order)), key=order.__getitem__)):
        then = "the list is read in turn: its first entry is the number of the element that comes first"
        return Wrong("that is each element's place in the order, not the order", why=why, next=then)
    own = [order[at : at + block] for at in range(0, len(order), block)]
    if all(min(mine) // block == max(mine) // block == at for at, mine in enumerate(own)) and order != sorted(order):
        then = "you may move elements to other blocks: all blocks take their threads from one list"
        return Wrong("elements are sorted within their blocks alone", why=why, next=then)
    lengths = [case["lengths"][case["paths"][number]] for number in order]
    if all(len(set(lengths[at : at + LANES])) == 1 for at in range(0, len(lengths), LANES)):
        then = "put those of one name together: lengths[name] may be equal for two names"
        return Wrong("two paths of one length are still two paths", why=f"{why}, all of one length", next=then)
    return Wrong("in this order some warps still take several paths", why=why, next="bring equal paths together")


_ALL = "in all cases"
SAID: dict[str, tuple[str, str, str]] = {
    "longest": (
        "a warp issues all of its paths, not the longest alone",
        f"the longest path of each warp was counted {_ALL}",
        "one after the other",
    ),
    "every thread": (
        "a warp issues a path once for all its threads",
        f"every thread's path was counted {_ALL}",
        "threads of one path go together",
    ),
    "shortest": (
        "a warp issues all of its paths, not the shortest alone",
        f"the shortest path of each warp was counted {_ALL}",
        "one after the other",
    ),
    "across blocks": (
        "warps begin anew with each block",
        f"32 elements in a row were a warp across blocks {_ALL}",
        "the last warp of a block may be short",
    ),
    "by block": (
        "paths differ within a warp, not within a block",
        f"every warp issued all paths of its block {_ALL}",
        "a warp skips what none of its threads takes",
    ),
    "by list": (
        "a warp issues the paths of its own threads",
        f"every warp issued all paths of the list {_ALL}",
        "a warp skips what none of its threads takes",
    ),
    "half warps": (
        "a warp has 32 threads",
        f"warps of 16 were counted {_ALL}",
        "32 in a row, or what is left of a block",
    ),
    "lengths for paths": (
        "two paths of one length are issued one after the other",
        f"their instructions were counted once {_ALL}",
        "collect the names of a warp's paths, not their lengths",
    ),
    "times lanes": (
        "an instruction of a warp is one, however many threads it has",
        f"what warps issue was multiplied by their threads {_ALL}",
        "threads of a warp go together",
    ),
}
