"""order_matters: how far the order moves a sum, and a reduction whose additions are the same for any arrival."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.kernel_programs import (
    replayed_kernels,
    require_launch,
    require_order,
    require_whole_barriers,
    written_kernels,
)
from edl_labs.units import counted
from edl_labs.virtual.warp import VirtualWarp, WarpReplay

LONGEST_CHAIN = 64  # additions that wait for each other, promised in the lab's text
LEAST_BLOCKS = 4  # that read the values, promised too
_ARRIVALS = 3  # draws of the order of blocks and warps; two tell most loose orders apart


@exercise("order_matters")
class OrderMatters(Exercise):
    """The range of a few values' sums over all orders, and kernels on a VirtualWarp that add up many."""

    answers = "all"

    answer_form: ClassVar[Any] = {"range": [0.0, 0.0], "program": ""}

    def probe(self, student: Any, given: Any) -> Any:
        found = student.range_of_sums([*given["values"]], given["fmt"])
        gpu = VirtualWarp()
        values, out = gpu.array("values", given["count"]), gpu.array("out", 1)
        student.steady_sum(gpu, values, out)
        return {"range": found, "program": written_kernels(gpu)}

    def public_want(self, case: Any, want: Any) -> Any:
        """The range: the program would be the answer."""
        return {"range": want["range"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got["range"]) != 2:
            why = f"range_of_sums returned {counted(len(got['range']), 'number')}"
            raise Wrong(
                "your function does not return the smallest and the largest sum",
                why=why,
                next="return (smallest, largest)",
            )
        for found, right, what in zip(got["range"], want["range"], ("smallest", "largest"), strict=True):
            if not close(found, right):
                why = f"got {found:.9g} as the {what} sum in {case['fmt']}, but expected {right:.9g}"
                then = "try every order, and round after every addition"
                raise Wrong(f"your {what} sum over all orders is wrong", why=why, next=then)
        run = replayed_kernels(got["program"], _arrays(case))
        require_launch(run)
        _judge_sum(case, run)
        require_order(run)
        require_whole_barriers(run)
        _judge_arrivals(case, got["program"], run)
        _judge_beginning(run)
        _judge_work(run)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The rule that gives all ranges, where they are not right."""
        found, right = [one["range"] for one in got], [one["range"] for one in want]
        if all(_same(*pair) for pair in zip(found, right, strict=True)):
            return None
        if all(_same(*pair) for pair in zip(found, [one[::-1] for one in right], strict=True)):
            then = "return (smallest, largest)"
            return Wrong(
                "your function returns the two sums in the wrong order",
                why="your function returns the largest sum first",
                next=then,
            )
        for rule, what, why, then in _RULES:
            given = [case["slips"].get(rule, case_right) for case, case_right in zip(cases, right, strict=True)]
            if all(
                _same(mine, theirs) or (rule == "in_float16" and _overflows(case, mine))
                for case, mine, theirs in zip(cases, found, given, strict=True)
            ):
                return Wrong(what, why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The values and the count."""
        return f"{case['values']} in {case['fmt']}; steady_sum of {case['count']} values"

    def format_answer(self, case: Any, got: Any) -> str:
        """The range, and what the kernels read."""
        run = replayed_kernels(got["program"], _arrays(case))
        reading = f"{counted(run.launches, 'launch')}, with {counted(_readers(run), 'block')} reading values"
        return f"{got['range'][0]:.9g} to {got['range'][1]:.9g}; {reading}"


def _arrays(case: Any) -> dict[str, tuple[list[int], str]]:
    return {"values": ([case["count"]], "float32"), "out": ([1], "float32")}


def _judge_sum(case: Any, run: WarpReplay) -> None:
    """The result is a sum with every element once."""
    (origin,) = run.origins("out")
    if run.undefined and not run.races:
        what, place, thread = run.undefined[0]
        why = f"thread {thread} of a block reads element {place} of {what}"
        raise Wrong(
            "your kernel reads an element of shared memory before it is written",
            why=why,
            next="write every element before it is read",
        )
    leaves = {leaf: times for leaf, times in run.leaves(origin).items() if leaf[0] == "values"}
    if not leaves:
        why = "no element of `values` has been added to out[0]"
        raise Wrong(
            "in your program, out[0] is not a sum of the values",
            why=why,
            next="write the sum to out[0] in the last kernel",
        )
    if run.races and (len(leaves) < case["count"] or ("nothing", 0) in run.leaves(origin)):
        require_order(run)
    missing = [place for place in range(case["count"]) if ("values", place) not in leaves]
    if missing:
        why = f"values[{missing[0]}] is not in the sum; in all, {len(missing)} of {case['count']} are missing"
        lost, then = _lost_blocks(run, missing), "which thread adds the last values?"
        if lost:
            readers = " and ".join(f"block {one}" for one in lost)
            why += f"; these are exactly the values that {readers} {'reads' if len(lost) == 1 else 'read'}"
            then = "do you add the sums of all blocks?"
        raise Wrong("your sum leaves out some values", why=why, next=then)
    twice = [leaf[1] for leaf, times in leaves.items() if times != 1]
    if twice:
        why = f"the sum contains values[{twice[0]}] {leaves['values', twice[0]]} times"
        raise Wrong("your sum contains some values more than once", why=why, next="which threads add this value?")
    added = {leaf[1]: times for leaf, times in run.leaves(origin).items() if leaf[0] == "constant" and leaf[1] != 0.0}
    if added:
        number, times = next(iter(added.items()))
        why = f"the sum contains the number {number:g} {counted(times, 'time')}"
        what = "your sum includes a number that is not one of the values"
        raise Wrong(what, why=why, next="with which value does each thread begin?")
    others = run.operations(origin) - {"+"}
    if others:
        why = f"the result contains the operation {min(others)}"
        raise Wrong(
            "your result does not come from additions only", why=why, next="use nothing but additions of the values"
        )


def _lost_blocks(run: WarpReplay, missing: list[int]) -> list[int]:
    """The few blocks that read the missing values and no others; none where there are no such blocks."""
    read: dict[int, set[int]] = {}
    for one in run.requests:
        if one.array == "values":
            read.setdefault(one.block, set()).update(address // one.itemsize for address in one.addresses)
    found = [block for block, places in read.items() if places <= {*missing}]
    return found if len(found) <= 2 and {*missing} == set().union(*(read[one] for one in found)) else []


def _judge_beginning(run: WarpReplay) -> None:
    """Nothing is added that was in memory before the first launch."""
    (origin,) = run.origins("out")
    strange = {leaf for leaf in run.leaves(origin) if leaf[0] not in ("values", "constant", "nothing")}
    if strange:
        array, place = min(strange)
        why = f"{array}[{place}] is added with the value that it had before the first launch"
        atomic = any(one.op == "atomic_add" and one.array == array for one in run.requests)
        memory = "memory that was never initialized"
        what = f"your atomics add to {memory}" if atomic else f"your sum includes {memory}"
        raise Wrong(what, why=why, next="write to this memory first, or do not read it")


def _judge_arrivals(case: Any, text: str, run: WarpReplay) -> None:
    """The same additions, in the same order, whatever comes first."""
    first = run.shape_of(run.origins("out")[0])
    for seed in range(_ARRIVALS):
        again = replayed_kernels(text, _arrays(case), arrival_seed=seed)
        if again.shape_of(again.origins("out")[0]) != first:
            adds = sum(one.op == "atomic_add" for one in run.requests)
            why = "when threads arrive in a different order, your program adds and rounds in a different order"
            why += f"; the program makes {counted(adds, 'request')} with atomic additions" if adds > 1 else ""
            then = "let each block write its sum to its own element, and add these sums in an order that you choose"
            raise Wrong(
                "in your program, the order of additions depends on the order in which threads arrive",
                why=why,
                next=then,
            )


def _judge_work(run: WarpReplay) -> None:
    readers = _readers(run)
    if readers < LEAST_BLOCKS:
        why = f"the values are read by only {counted(readers, 'block')}; at least {LEAST_BLOCKS} blocks are required"
        then = "let each block sum a part, and add the parts in a second launch"
        raise Wrong("in your program, too few blocks share the work", why=why, next=then)
    chain = run.depth(run.origins("out")[0])
    if chain > LONGEST_CHAIN:
        why = f"a chain has {chain} dependent additions; at most {LONGEST_CHAIN} are allowed"
        then = "use more threads with fewer values each, and a tree in each block"
        raise Wrong("in your program, one thread adds too many values, one after the other", why=why, next=then)


def _readers(run: WarpReplay) -> int:
    return len({(one.launch, one.block) for one in run.requests if one.array == "values"})


def _as_list(found: Any) -> list[Any]:
    try:
        return [*found]
    except TypeError:  # a single number
        return [found]


def _overflows(case: Any, found: Any) -> bool:
    """Whether float16 had no room for the sums of another format."""
    return case["fmt"] != "float16" and not all(map(math.isfinite, found))


def _same(one: Any, other: Any) -> bool:
    return all(close(*pair) for pair in zip(one, other, strict=True))


# What a case's `slips` hold, by name: each with its sentence, where it gives all ranges.
_RULES: tuple[tuple[str, str, str, str], ...] = (
    (
        "rounded_once",
        "your function does not round sums after every addition",
        "your sums are computed in 64 bits, and at most the final sum is rounded",
        "round inside the loop, after each addition",
    ),
    (
        "never_rounded",
        "your function does not round sums after every addition",
        "your sums are computed in 64 bits, and at most the final sum is rounded",
        "round inside the loop, after each addition",
    ),
    (
        "sorted",
        "your function tries only sorted orders",
        "in all cases, your sums are those of the values in ascending and descending order",
        "try every order: any of them can lose the least or the most",
    ),
    (
        "there_and_back",
        "your function tries only two orders",
        "in all cases, your sums are those of the list forwards and backwards",
        "use itertools.permutations to try every order",
    ),
    (
        "as_given",
        "your function tries only one order",
        "in all cases, both of your sums are those of the given order",
        "use itertools.permutations to try every order",
    ),
    (
        "by_size",
        "your function tries only orders by absolute value",
        "in all cases, your sums are those with small values first and with large values first",
        "try every order: any of them can lose the least or the most",
    ),
    (
        "equal_once",
        "your function adds several equal values only once",
        "this happens in all cases",
        "permute the list itself: a set keeps only one of several equal values",
    ),
    (
        "first_twice",
        "your function adds the first value of each order twice",
        "in all cases, each of your sums starts with the first value and then adds this value again",
        "start with the first value, and continue with the second",
    ),
    (
        "in_float32",
        "your function always rounds sums in single precision (float32)",
        "this happens in all cases, even if the format is different",
        "round to `fmt` instead",
    ),
    (
        "in_float16",
        "your function always rounds sums in half precision (float16)",
        "this happens in all cases, even if the format is different",
        "round to `fmt` instead",
    ),
)
