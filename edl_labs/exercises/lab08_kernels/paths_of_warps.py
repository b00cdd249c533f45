"""warp_paths: instructions issued by warps whose threads take different paths, and an order that issues the fewest."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import digest, named_slip
from edl_labs.units import counted
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
            why = f"got {got['issued']}, expected {want['issued']}; in the first block, {parts}"
            then = "count each different path of a warp once; the last warp of a block ends with the block"
            raise Wrong("your number of issued instructions is wrong", why=why, next=then)
        if not case["can_be_sorted"]:
            return
        if sorted(got["order"]) != list(range(len(case["paths"]))):
            why = f"your order has {len(got['order'])} numbers for {len(case['paths'])} elements"
            then = "return the number of each element once; numbers start at 0"
            raise Wrong("your order does not contain every element once", why=why, next=then)
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
    return f"threads {first} to {stop - 1} issue {counted(count, 'instruction')}"


def _mixed(case: Any, order: list[int]) -> list[int]:
    """The first place of each warp that takes several paths in this order."""
    paths = [case["paths"][number] for number in order]
    return [at for at in range(0, len(paths), LANES) if len(set(paths[at : at + LANES])) > 1]


def _unsorted(case: Any, order: list[int]) -> Wrong:
    """Why warps of an order still take several paths."""
    first, block = _mixed(case, order)[0], case["block"]
    taken = {case["paths"][number] for number in order[first : first + LANES]}
    why = f"in your order, warp {first // LANES} has {len(taken)} paths"
    if not _mixed(case, sorted(range(len(order)), key=order.__getitem__)):
        then = "let the first entry be the number of the element that comes first"
        return Wrong("your result gives each element's position in the order, not the order itself", why=why, next=then)
    own = [order[at : at + block] for at in range(0, len(order), block)]
    if all(min(mine) // block == max(mine) // block == at for at, mine in enumerate(own)) and order != sorted(order):
        then = "move elements to other blocks as well: one order covers all blocks"
        return Wrong("your function sorts elements only within their blocks", why=why, next=then)
    lengths = [case["lengths"][case["paths"][number]] for number in order]
    if all(len(set(lengths[at : at + LANES])) == 1 for at in range(0, len(lengths), LANES)):
        then = "group elements by name: lengths[name] may be equal for two names"
        return Wrong(
            "your function treats paths of the same length as one path", why=f"{why}, all of the same length", next=then
        )
    return Wrong(
        "some warps still take several paths with your order",
        why=why,
        next="put elements with equal paths next to each other",
    )


_ALL = "in all cases"
SAID: dict[str, tuple[str, str, str]] = {
    "longest": (
        "your function counts only the longest path of each warp",
        f"this happens {_ALL}",
        "count all paths of a warp: they are issued one after the other",
    ),
    "every thread": (
        "your function counts the path of every thread separately",
        f"this happens {_ALL}",
        "count each path of a warp once: all threads on it run together",
    ),
    "shortest": (
        "your function counts only the shortest path of each warp",
        f"this happens {_ALL}",
        "count all paths of a warp: they are issued one after the other",
    ),
    "across blocks": (
        "in your function, warps reach from one block into the next",
        f"{_ALL}, your function counts every 32 consecutive elements as a warp",
        "begin a new warp with each block: the last warp of a block may be short",
    ),
    "by block": (
        "your function counts the paths of a whole block for each warp",
        f"{_ALL}, every warp issues all paths of its block",
        "count only the paths that at least one of the warp's threads takes",
    ),
    "by list": (
        "your function counts the paths of the whole list for each warp",
        f"{_ALL}, every warp issues all paths of the list",
        "count only the paths that at least one of the warp's threads takes",
    ),
    "half warps": (
        "your function counts warps with 16 threads instead of 32",
        f"this happens {_ALL}",
        "use 32 consecutive threads, or what is left of a block",
    ),
    "lengths for paths": (
        "your function counts two paths of the same length as one path",
        f"{_ALL}, your function counts each different length of a warp's paths once",
        "collect the names of a warp's paths, not their lengths",
    ),
    "times lanes": (
        "your function counts an instruction once per thread instead of once per warp",
        f"{_ALL}, the instructions of a warp are multiplied by the warp's number of threads",
        "count an instruction of a warp once: its threads execute it together",
    ),
}
