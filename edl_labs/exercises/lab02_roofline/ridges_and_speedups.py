"""ridge_and_bound and amdahl: what a machine allows, and what a change can win."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import pair, say


@exercise("ridge_and_bound")
class RidgeAndBound(Exercise):
    """Ridge points of a machine with several roofs, and the shortest possible time of work on it.

    `student.ridge_point(machine, dtype, level)` and `student.lower_bound(machine, work)`.
    """

    answers = "all"

    def explain_exception(self, case: Any, kind: str) -> Wrong | None:
        """A level or dtype of another machine."""
        if kind != "KeyError":
            return None
        levels, dtypes = (", ".join(case["machine"][name]) for name in ("bandwidth_byte_per_s", "peak_flop_per_s"))
        return Wrong(
            "your code looks up a level or a dtype that this machine does not have",
            why=f"its levels are {levels}, and its dtypes are {dtypes}",
            next="use the dtype and the level in the arguments, and go through all levels in moved_bytes",
        )

    def probe(self, student: Any, given: Any) -> Any:
        machine = {name: dict(rates) for name, rates in given["machine"].items()}
        work = {**given["work"], "moved_bytes": dict(given["work"]["moved_bytes"])}
        return {
            "ridge": student.ridge_point(machine, given["dtype"], given["level"]),
            "bound": student.lower_bound(machine, work),
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got["ridge"], want["ridge"]):
            raise _ridge_mistake(case, got["ridge"], want["ridge"])
        pair(got["bound"], "time_s, limiter")
        if not close(got["bound"][0], want["bound"][0]):
            raise _bound_mistake(case, got["bound"][0], want["bound"][0])
        if got["bound"][1] != want["bound"][1]:
            raise Wrong(
                f"{got['bound'][1][:20]!r} does not limit this work",
                why="the limiter is what takes longest: 'compute', or the name of a memory level",
                next="compare all times, and name what takes longest",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Times that were left out everywhere: all but the arithmetic's, or all but one memory level's."""
        bounds = [answer["bound"] for answer in got]
        if not all(close(answer["ridge"], right["ridge"]) for answer, right in zip(got, want, strict=True)):
            return None
        if all(close(right["bound"][0], time_s) for (time_s, _), right in zip(bounds, want, strict=True)):
            return None
        then = "compare all times: which is the longest, and what takes that long?"
        arithmetic = [_peak_s(case) for case in cases]
        if _all_close(bounds, arithmetic) and all(name == "compute" for _, name in bounds):
            why = (
                "you returned 'compute' for all work; max() of a dict compares the keys, and 'compute' is the largest "
                "of these names, because capital letters come before small ones"
            )
            return Wrong("your code compares names, or looks only at the arithmetic", why=why, next=then)
        alone_at, beside_arithmetic = [], []
        for level_of, what in _ONE_LEVEL:
            alone = [_level_s(case, level_of(case["work"]["moved_bytes"])) for case in cases]
            if _all_close(bounds, alone):
                alone_at.append(what)
            elif _all_close(bounds, list(map(max, alone, arithmetic))):
                beside_arithmetic.append(what)
        if not alone_at and not beside_arithmetic:
            return None
        levels = " or ".join(alone_at or beside_arithmetic)
        beside = "" if alone_at else "of the memory levels, "
        off = sum(_is_off(*one) for one in zip(got, want, strict=True))
        why = f"this mistake gives exactly your times; in {off} of {len(cases)} cases another level takes longer"
        return Wrong(f"{beside}your code looks only at {levels}", why=why, next=then)


def _all_close(bounds: list[Any], times_s: list[float]) -> bool:
    return all(close(bound[0], time_s) for bound, time_s in zip(bounds, times_s, strict=True))


def _is_off(answer: Any, right: Any) -> bool:
    return not close(answer["bound"][0], right["bound"][0])


def _peak_s(case: Any) -> float:
    return float(case["work"]["flop"] / _peak(case))


def _level_s(case: Any, level: str) -> float:
    return float(case["work"]["moved_bytes"][level] / case["machine"]["bandwidth_byte_per_s"][level])


# Each is (the only memory level whose time counts, what it is called).
_ONE_LEVEL: tuple[tuple[Callable[[dict[str, float]], str], str], ...] = (
    (lambda moved: list(moved)[-1], "the main memory"),
    (lambda moved: next(iter(moved)), "the first memory level"),
    (lambda moved: max(moved, key=moved.__getitem__), "the memory level with the most bytes"),
)


def _peak(case: Any) -> float:
    return float(case["machine"]["peak_flop_per_s"][case["work"]["dtype"]])


def _ridge_mistake(case: Any, ridge: Any, right: float) -> Wrong:
    if ridge and close(1 / ridge, right):
        what, then = "your answer is in bytes per FLOP", "return it in FLOP/B, the unit of an intensity"
    elif any(close(ridge, case["machine"]["peak_flop_per_s"][d] / b) for d, b in _others(case)):
        what, then = (
            "your ridge is that of a different roof",
            "use the peak of this dtype and the bandwidth of this level",
        )
    else:
        what, then = (
            f"expected a ridge point of {right:.7g} FLOP/B",
            "at which intensity do both limits allow the same FLOP/s?",
        )
    return Wrong(what, why=f"for {case['dtype']} and {case['level']}, your function returned {say(ridge)}", next=then)


def _others(case: Any) -> list[tuple[str, float]]:
    machine = case["machine"]
    return [(d, b) for d in machine["peak_flop_per_s"] for b in machine["bandwidth_byte_per_s"].values()]


def _bound_mistake(case: Any, time_s: float, right_s: float) -> Wrong:
    machine, work = case["machine"], case["work"]
    moves = [nbytes / machine["bandwidth_byte_per_s"][level] for level, nbytes in work["moved_bytes"].items()]
    compute_s = work["flop"] / _peak(case)
    all_bytes = sum(work["moved_bytes"].values())
    shared = [all_bytes / machine["bandwidth_byte_per_s"][level] for level in work["moved_bytes"]]
    if close(time_s, sum(moves) + compute_s):
        what, why = "your code adds up times that overlap", "all memory levels and the arithmetic work at the same time"
    elif close(time_s, max(compute_s, sum(moves))):
        what, why = "your code adds up the times of the memory levels", "all levels work at the same time"
    elif work["flop"] and close(time_s, work["flop"] / max(*moves, compute_s)):
        what, why = (
            "your bound is a rate in FLOP/s",
            f"your function returned {say(time_s)}; expected the shortest time",
        )
    elif close(time_s, min([*moves, compute_s])):
        what, why = "your code chooses the shortest of the times", "work is done only when its slowest part is done"
    elif any(close(time_s, one_s) for one_s in (*moves, compute_s)):
        longest = "compute" if close(compute_s, right_s) else max(zip(moves, work["moved_bytes"], strict=True))[1]
        what, why = (
            "your bound is not the longest of the times",
            f"{longest} takes {right_s:.7g} s, but your bound is {time_s:.7g} s",
        )
    elif any(close(time_s, work["flop"] / peak) for peak in machine["peak_flop_per_s"].values()):
        what, why = "your code uses the peak of another dtype", f"the work is in {work['dtype']}"
    elif len(moves) > 1 and close(time_s, max(*shared, compute_s)):
        what, why = (
            "your code uses the bytes of all levels for each level",
            "moved_bytes gives each level's own number of bytes",
        )
    else:
        what, why = "the lower bound is wrong", f"expected {right_s:.7g} s, got {time_s:.7g} s"
    return Wrong(
        what, why=why, next="compute one time for each level and one for the arithmetic: which of them counts?"
    )


@exercise("amdahl")
class Amdahl(Exercise):
    """The speed-up of the whole when some classes of operations become faster.

    `student.speedup(classes, faster)` gives the speed-up of the whole.
    """

    answers = "all"

    def explain_exception(self, case: Any, kind: str) -> Wrong | None:
        """A class that does not become faster."""
        if kind != "KeyError" or case["classes"].keys() == case["faster"].keys():
            return None
        unchanged = [name for name in case["classes"] if name not in case["faster"]]
        return Wrong(
            "your code looks up a factor for a class that has none",
            why=f"`faster` has no factor for {' or '.join(map(repr, unchanged[:2]))}",
            next="keep the old time for a class without a factor",
        )

    def probe(self, student: Any, given: Any) -> Any:
        return student.speedup({name: dict(row) for name, row in given["classes"].items()}, dict(given["faster"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got, want):
            raise _speedup_mistake(case, got, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The formulas in _SPEEDUPS that give every answer that was returned."""
        found = [told for form, *told in _SPEEDUPS if _gives(form, cases, got)]
        if not found:
            return None
        whats, whys = zip(*found, strict=True)
        return Wrong(", or ".join(whats), why=", or ".join(whys), next=_THEN)


_THEN = "how long does each class take afterwards, if the whole took 1 before?"
_Shares = dict[str, float]


def _gives(form: Callable[[_Shares, _Shares], float], cases: list[Any], got: list[float]) -> bool:
    """Whether a formula of the shares of time and the factors gives all of `got`."""
    for case, answer in zip(cases, got, strict=True):
        value = form({name: row["time_share"] for name, row in case["classes"].items()}, case["faster"])
        if answer != value and not close(answer, value, atol=1e-9):
            return False
    return True


def _old_over(new: float) -> float:
    return 1 / new if new else math.inf


def _by_position(shares: _Shares, faster: _Shares) -> float:
    saved = (share * (1 - 1 / factor) for share, factor in zip(shares.values(), faster.values(), strict=False))
    return _old_over(1 - sum(saved))


def _alone(shares: _Shares, faster: _Shares) -> float:
    return math.prod(_old_over(1 - shares[name] + shares[name] / factor) for name, factor in faster.items())


def _finite_or_one(factor: float) -> float:
    return factor if math.isfinite(factor) else 1.0


def _first_alone(shares: _Shares, faster: _Shares) -> float:
    return next((_old_over(1 - shares[name] + shares[name] / factor) for name, factor in faster.items()), 1.0)


# Each is (the speed-up that a mistake gives, what is wrong, why).
_SPEEDUPS: list[tuple[Callable[[_Shares, _Shares], float], str, str]] = [
    (
        lambda shares, faster: sum(share * faster.get(name, 1.0) for name, share in shares.items()),
        "your code averages the factors",
        "what is slow stays slow: add up times, not speeds",
    ),
    (
        lambda shares, faster: _old_over(sum(share * faster.get(name, 1.0) for name, share in shares.items())),
        "your code multiplies times by their factors",
        "a class that becomes 8 times as fast takes an eighth of its time",
    ),
    (
        lambda shares, faster: _old_over(sum(shares[name] / factor for name, factor in faster.items())),
        "your code leaves out the classes that do not change",
        "a class that is not in `faster` takes as long as before",
    ),
    (_by_position, "your code assigns factors to classes by position", "`faster` refers to classes by name"),
    (_alone, "your code multiplies the gains of single changes", "each gain assumes that nothing else has changed"),
    (
        lambda shares, faster: _old_over(sum(share for name, share in shares.items() if name not in faster)),
        "your code treats every class in `faster` as free",
        "a class is free only if its factor is math.inf",
    ),
    (
        lambda shares, faster: _old_over(1 - sum(shares[name] / factor for name, factor in faster.items())),
        "your code subtracts the time that a class takes after its speed-up",
        "the whole becomes shorter only by the time that the class saves",
    ),
    (
        lambda shares, faster: _old_over(sum(share / max(1, faster.get(name, 1)) for name, share in shares.items())),
        "your code does not use a factor below 1",
        "such a factor makes a class slower: with 0.5, the class takes twice as long",
    ),
    (
        lambda shares, faster: 2 - sum(share / faster.get(name, 1.0) for name, share in shares.items()),
        "your function returned 1 plus the share of time that is saved",
        "a program that takes half of the time is twice as fast, not 1.5 times",
    ),
    (
        _first_alone,
        "your code makes only the first class in `faster` faster",
        "a `return` inside a loop ends it in the first iteration",
    ),
    (
        lambda shares, faster: _old_over(
            sum(share / _finite_or_one(faster.get(name, 1.0)) for name, share in shares.items())
        ),
        "in your code, a class with a factor of math.inf takes as long as before",
        "such a class takes no time: 1 / math.inf is 0.0",
    ),
    (
        lambda shares, faster: _old_over(sum(share / (1 + faster.get(name, 0.0)) for name, share in shares.items())),
        "your code treats a factor of 2 as three times as fast",
        "a factor of 2 means that a class takes half of its time",
    ),
]


def _speedup_mistake(case: Any, got: float, want: float) -> Wrong:
    rows, faster = case["classes"], case["faster"]
    left = {share: sum(row[share] / faster.get(name, 1.0) for name, row in rows.items()) for share in ("flop_share",)}
    if close(got * left["flop_share"], 1.0):
        what, why = (
            "your code uses shares of FLOPs, not of time",
            "a class with 0.2 % of the FLOPs can take a quarter of the time",
        )
    elif got and close(1 / got, want):
        what, why = "your answer is the share of time that remains", "expected the speed-up, old time over new time"
    elif got and close(100 * want, got):
        what, why = "your answer is a percentage", "expected a factor"
    elif close(got, 100 * (want - 1)):
        what, why = "your answer says by how many percent the whole is faster", "expected old time over new time"
    else:
        what, why = "the speed-up is wrong", f"expected {want:.7g}, got {got:.7g}"
    return Wrong(what, why=why, next=_THEN)
