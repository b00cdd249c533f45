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
            "a level or a dtype was looked up that this machine does not have",
            why=f"its levels are {levels}, its dtypes {dtypes}",
            next="take dtype and level from the arguments, and go through all levels that moved_bytes names",
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
                next="put all times side by side and name the largest",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Times that were left out everywhere: all but the arithmetic's, or all but one memory level's."""
        bounds = [answer["bound"] for answer in got]
        if not all(close(answer["ridge"], right["ridge"]) for answer, right in zip(got, want, strict=True)):
            return None
        if all(close(right["bound"][0], time_s) for (time_s, _), right in zip(bounds, want, strict=True)):
            return None
        then = "put all times side by side; which is the longest, and whose is it?"
        arithmetic = [_peak_s(case) for case in cases]
        if _all_close(bounds, arithmetic) and all(name == "compute" for _, name in bounds):
            why = "'compute' was returned for all work; max() of a dict compares its keys: the last name wins"
            return Wrong("names were compared, or only the arithmetic was looked at", why=why, next=then)
        whats = []
        for level_of, what in _ONE_LEVEL:
            alone = [_level_s(case, level_of(case["work"]["moved_bytes"])) for case in cases]
            if _all_close(bounds, alone) or _all_close(bounds, list(map(max, alone, arithmetic))):
                whats.append(what)
        if not whats:
            return None
        off = sum(_is_off(*one) for one in zip(got, want, strict=True))
        why = f"this gives all your times; in {off} of {len(cases)} cases another level takes longer"
        return Wrong(", or ".join(whats), why=why, next=then)


def _all_close(bounds: list[Any], times_s: list[float]) -> bool:
    return all(close(bound[0], time_s) for bound, time_s in zip(bounds, times_s, strict=True))


def _is_off(answer: Any, right: Any) -> bool:
    return not close(answer["bound"][0], right["bound"][0])


def _peak_s(case: Any) -> float:
    return float(case["work"]["flop"] / _peak(case))


def _level_s(case: Any, level: str) -> float:
    return float(case["work"]["moved_bytes"][level] / case["machine"]["bandwidth_byte_per_s"][level])


# Each is (the only memory level whose time counts, what that leaves out).
_ONE_LEVEL: tuple[tuple[Callable[[dict[str, float]], str], str], ...] = (
    (lambda moved: list(moved)[-1], "only the main memory was looked at"),
    (lambda moved: next(iter(moved)), "only the first memory level was looked at"),
    (lambda moved: max(moved, key=moved.__getitem__), "only the memory level with the most bytes was looked at"),
)


def _peak(case: Any) -> float:
    return float(case["machine"]["peak_flop_per_s"][case["work"]["dtype"]])


def _ridge_mistake(case: Any, ridge: Any, right: float) -> Wrong:
    if ridge and close(1 / ridge, right):
        what, then = "that is bytes per FLOP", "the ridge has the unit of an intensity, FLOP/B"
    elif any(close(ridge, case["machine"]["peak_flop_per_s"][d] / b) for d, b in _others(case)):
        what, then = "that is another roof's ridge", "each dtype has its peak, each level its bandwidth"
    else:
        what, then = (
            f"the ridge point is not {right:.7g} FLOP/B",
            "at which intensity do both limits allow the same FLOP/s?",
        )
    return Wrong(what, why=f"for {case['dtype']} against {case['level']}, {say(ridge)} was returned", next=then)


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
        what, why = "times were added up", "all memory levels and the arithmetic work at the same time"
    elif close(time_s, max(compute_s, sum(moves))):
        what, why = "the times of the memory levels were added up", "all levels work at the same time"
    elif work["flop"] and close(time_s, work["flop"] / max(*moves, compute_s)):
        what, why = "that is a rate in FLOP/s, not a time", f"{say(time_s)} was returned; expected the shortest time"
    elif close(time_s, min([*moves, compute_s])):
        what, why = "the shortest of the times is not a bound", "work is over when its slowest part is"
    elif any(close(time_s, one_s) for one_s in (*moves, compute_s)):
        longest = "compute" if close(compute_s, right_s) else max(zip(moves, work["moved_bytes"], strict=True))[1]
        what, why = "another time is longer", f"{longest} takes {right_s:.7g} s, but {time_s:.7g} s was returned"
    elif any(close(time_s, work["flop"] / peak) for peak in machine["peak_flop_per_s"].values()):
        what, why = "another dtype's peak was used", f"the work says {work['dtype']}"
    elif len(moves) > 1 and close(time_s, max(*shared, compute_s)):
        what, why = "each level was charged with the bytes of all", "moved_bytes says what each of them moves"
    else:
        what, why = "the lower bound is wrong", f"expected {right_s:.7g} s, got {time_s:.7g} s"
    return Wrong(what, why=why, next="one time for each level and one for the arithmetic; which of them counts?")


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
            "a factor was looked up for a class that has none",
            why=f"faster has no {', '.join(map(repr, unchanged[:2]))}",
            next="a class without a factor stays as it is: its time is the old one",
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
        "the factors were averaged",
        "what is slow stays slow: add up times, not speeds",
    ),
    (
        lambda shares, faster: _old_over(sum(share * faster.get(name, 1.0) for name, share in shares.items())),
        "times were multiplied by their factors",
        "what becomes 8 times faster takes an eighth of its time",
    ),
    (
        lambda shares, faster: _old_over(sum(shares[name] / factor for name, factor in faster.items())),
        "the classes that do not change were left out",
        "what is not in `faster` takes as long as before",
    ),
    (_by_position, "factors were given to classes by their places", "`faster` says by name which class it means"),
    (_alone, "the gains of single changes were multiplied", "each gain counts as if the others had not been made"),
    (
        lambda shares, faster: _old_over(sum(share for name, share in shares.items() if name not in faster)),
        "every class in `faster` was taken to cost nothing",
        "that is so only for a factor of math.inf",
    ),
    (
        lambda shares, faster: _old_over(1 - sum(shares[name] / factor for name, factor in faster.items())),
        "what a class takes afterwards was taken off",
        "only what it saves goes away",
    ),
    (
        lambda shares, faster: _old_over(sum(share / max(1, faster.get(name, 1)) for name, share in shares.items())),
        "a factor below 1 was not used",
        "it makes a class slower: with 0.5 it takes twice as long",
    ),
    (
        lambda shares, faster: 2 - sum(share / faster.get(name, 1.0) for name, share in shares.items()),
        "1 plus the share of time that is saved was returned",
        "who needs half of the time is twice as fast, not 1.5 times",
    ),
    (
        _first_alone,
        "only the first class in `faster` was made faster",
        "a `return` in a loop ends it at its first turn",
    ),
    (
        lambda shares, faster: _old_over(
            sum(share / _finite_or_one(faster.get(name, 1.0)) for name, share in shares.items())
        ),
        "a class with a factor of math.inf took as long as before",
        "it takes no time: 1 / math.inf is 0.0",
    ),
    (
        lambda shares, faster: _old_over(sum(share / (1 + faster.get(name, 0.0)) for name, share in shares.items())),
        "a factor of 2 was taken for three times as fast",
        "2 means that a class takes half of its time",
    ),
]


def _speedup_mistake(case: Any, got: float, want: float) -> Wrong:
    rows, faster = case["classes"], case["faster"]
    left = {share: sum(row[share] / faster.get(name, 1.0) for name, row in rows.items()) for share in ("flop_share",)}
    if close(got * left["flop_share"], 1.0):
        what, why = "FLOPs were taken for time", "a class with 0.2 % of the FLOPs can take a quarter of the time"
    elif got and close(1 / got, want):
        what, why = "that is the share of time that remains, not the speed-up", "a speed-up is old time over new time"
    elif got and close(100 * want, got):
        what, why = "that is a percentage", "return the factor"
    elif close(got, 100 * (want - 1)):
        what, why = "that is how many percent faster the whole is", "return old time over new time"
    else:
        what, why = "the speed-up is wrong", f"expected {want:.7g}, got {got:.7g}"
    return Wrong(what, why=why, next=_THEN)
