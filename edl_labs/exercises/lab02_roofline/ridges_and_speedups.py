"""ridge_and_bound, minibatch_crossover and amdahl: what a machine allows, and what a change can win."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import pair, say


@exercise("ridge_and_bound")
class RidgeAndBound:
    """Ridge points of a machine with several roofs, and the shortest possible time of work on it.

    `student.ridge_point(machine, dtype, level)` and `student.lower_bound(machine, work)`.
    """

    def raised(self, case: Any, kind: str) -> Wrong | None:
        """A level or dtype of another machine."""
        if kind != "KeyError":
            return None
        levels, dtypes = (", ".join(case["machine"][name]) for name in ("bandwidth_byte_per_s", "peak_flop_per_s"))
        return Wrong(
            "a level or a dtype was looked up that this machine does not have",
            why=f"its levels are {levels}, its dtypes {dtypes}",
            next="take dtype and level from the arguments, and go through all levels that moved_bytes names",
        )

    def probe(self, student: Any, case: Any) -> Any:
        machine = {name: dict(rates) for name, rates in case["machine"].items()}
        work = {**case["work"], "moved_bytes": dict(case["work"]["moved_bytes"])}
        return {
            "ridge": student.ridge_point(machine, case["dtype"], case["level"]),
            "bound": student.lower_bound(machine, work),
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got["ridge"], want["ridge"]):
            raise _ridge_mistake(case, got["ridge"], want["ridge"])
        pair(got["bound"], "time_s, limiter")
        if not close(got["bound"][0], want["bound"][0]):
            raise _bound_mistake(case, got["bound"][0])
        if got["bound"][1] != want["bound"][1]:
            raise Wrong(
                f"{got['bound'][1][:20]!r} does not limit this work",
                why="the limiter is what takes longest: 'compute', or the name of a memory level",
                next="put all times side by side and name the largest",
            )

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Arithmetic alone everywhere; 'compute' is the largest of the names too."""
        arithmetic = [case["work"]["flop"] / _peak(case) for case in cases]
        bounds = [answer["bound"] for answer in got]
        if any(name != "compute" for _, name in bounds):
            return None
        if not all(close(time_s, right) for (time_s, _), right in zip(bounds, arithmetic, strict=True)):
            return None
        if not all(close(answer["ridge"], right["ridge"]) for answer, right in zip(got, want, strict=True)):
            return None
        return Wrong(
            "names were compared, or only the arithmetic was looked at",
            why="'compute' came back for all work; the `max` of a dict is its last name in the alphabet",
            next="put all times side by side; which is the longest, and whose is it?",
        )


def _peak(case: Any) -> float:
    return float(case["machine"]["peak_flop_per_s"][case["work"]["dtype"]])


def _ridge_mistake(case: Any, ridge: Any, right: float) -> Wrong:
    if ridge and close(1 / ridge, right):
        what, then = "that is bytes per FLOP", "the ridge has the unit of an intensity, FLOP/B"
    elif any(close(ridge, case["machine"]["peak_flop_per_s"][d] / b) for d, b in _others(case)):
        what, then = "that is another roof's ridge", "each dtype has its peak, each level its bandwidth"
    else:
        what, then = "the ridge point is wrong", "at which intensity do both limits allow the same FLOP/s?"
    return Wrong(what, why=f"asked for {case['dtype']} against {case['level']}, {say(ridge)} came back", next=then)


def _others(case: Any) -> list[tuple[str, float]]:
    machine = case["machine"]
    return [(d, b) for d in machine["peak_flop_per_s"] for b in machine["bandwidth_byte_per_s"].values()]


def _bound_mistake(case: Any, time_s: float) -> Wrong:
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
        what, why = "that is a rate in FLOP/s, not a time", f"{say(time_s)} came back; the shortest time is asked for"
    elif close(time_s, min([*moves, compute_s])):
        what, why = "the shortest of the times is not a bound", "work is over when its slowest part is"
    elif close(time_s, moves[-1]) or (close(time_s, max(moves[-1], compute_s)) and len(moves) > 1):
        what, why = "only the main memory was looked at", f"{len(moves) + 1} roofs apply to this work"
    elif close(time_s, compute_s):
        what, why = "only the arithmetic was looked at", f"{len(moves) + 1} roofs apply to this work"
    elif any(close(time_s, work["flop"] / peak) for peak in machine["peak_flop_per_s"].values()):
        what, why = "another dtype's peak was used", f"the work says {work['dtype']}"
    elif len(moves) > 1 and close(time_s, max(*shared, compute_s)):
        what, why = "each level was charged with the bytes of all", "moved_bytes says what each of them moves"
    else:
        what, why = "the lower bound is wrong", f"{say(time_s)} s came back"
    return Wrong(what, why=why, next="one time for each level and one for the arithmetic; which of them counts?")


@exercise("minibatch_crossover")
class MinibatchCrossover:
    """The batch at which a layer becomes compute-bound, and the width below which none does.

    `student.batch_at_ridge(inputs, outputs, ridge=, itemsize=)` and `student.width_limit(ridge=, itemsize=)`.
    """

    def probe(self, student: Any, case: Any) -> Any:
        machine = {"ridge": case["ridge"], "itemsize": case["itemsize"]}
        return {
            "batch": student.batch_at_ridge(case["inputs"], case["outputs"], **machine),
            "width": student.width_limit(**machine),
        }

    def raised(self, case: Any, kind: str) -> Wrong | None:
        """A division at the width limit itself."""
        if kind != "ZeroDivisionError":
            return None
        why, then = "at the width limit the batch grows beyond all bounds", "give math.inf there, and below"
        return Wrong("no batch is large enough at the width limit, and yours divides by zero", why=why, next=then)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not _same(got["batch"], want["batch"]):
            raise _batch_mistake(case, got["batch"], want["batch"])
        if not close(got["width"], want["width"]):
            factor = got["width"] / want["width"]
            known = {4 / case["itemsize"]: "4 bytes an element were assumed", 0.5: "half of the width came back"}
            what = next((text for ratio, text in known.items() if close(factor, ratio)), "the width limit is wrong")
            if close(got["width"], want["width"] - 1):
                what = "one less than the width limit came back: at the limit itself no batch reaches the ridge either"
            why = f"with {case['itemsize']} bytes an element and a ridge of {case['ridge']}"
            raise Wrong(what, why=why, next="let the batch grow for ever: which intensity does a square layer tend to?")

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Right for 4 bytes an element, and the answer for 4 bytes everywhere else."""
        answers = zip(cases, got, want, strict=True)
        batches = [(case, answer["batch"], right["batch"]) for case, answer, right in answers]
        if all(_same(batch, right) for _, batch, right in batches):
            return None  # the width is wrong, whose sentence is its own
        if (square := _square_layer(batches)) is not None:
            return square
        if {case["itemsize"] for case in cases} == {4} or not all(_for_four_bytes(*one) for one in batches):
            return None
        return Wrong(
            "4 bytes an element were assumed for the batch",
            why="right where an element has 4 bytes; elsewhere the answer for 4 bytes came back",
            next="use itemsize",
        )


def _square_layer(batches: list[tuple[Any, float, float]]) -> Wrong | None:
    """Right for square layers, and elsewhere the batch of the square layer with one of the two sides."""
    wrong = [(case, got) for case, got, want in batches if not _same(got, want)]
    for kept, forgotten in (("inputs", "outputs"), ("outputs", "inputs")):
        square = [
            (case, got, close(_reached({**case, forgotten: case[kept]}, got), case["ridge"])) for case, got in wrong
        ]
        if (
            len(wrong) > 1
            and all(fits or math.isinf(got) or got < 0 for _, got, fits in square)
            and any(fits and case["inputs"] != case["outputs"] for case, _, fits in square)
        ):
            why = (
                f"right where both sides are equal; elsewhere the batch of a layer with {kept} on both sides came back"
            )
            return Wrong("a square layer was taken", why=why, next=f"{forgotten} has to be in the formula too")
    return None


def _for_four_bytes(case: Any, got: float, want: float) -> bool:
    """Whether `got` is the batch of a layer whose elements have 4 bytes; it has to be right where they have."""
    if case["itemsize"] == 4 or got == math.inf:
        return _same(got, want) or (got == math.inf and case["itemsize"] < 4)
    return math.isfinite(got) and got > 0 and close(_reached(case, got) / case["ridge"], 4 / case["itemsize"])


def _reached(case: Any, batch: float) -> float:
    """FLOP/B of a layer at a batch."""
    inputs, outputs = case["inputs"], case["outputs"]
    bytes_moved = case["itemsize"] * (inputs * outputs + (inputs + outputs) * batch)
    return float(2 * inputs * outputs * batch / bytes_moved) if math.isfinite(batch) and bytes_moved else math.inf


def _same(got: Any, want: float) -> bool:
    return got == want if math.isinf(want) else close(got, want)


def _batch_mistake(case: Any, got: float, want: float) -> Wrong:
    inputs, outputs, bytes_a_flop = case["inputs"], case["outputs"], case["ridge"] * case["itemsize"]
    mean = 2 * inputs * outputs / (inputs + outputs)
    reached = _reached(case, got)
    ratio, itemsize = reached / case["ridge"], case["itemsize"]
    at = f"at a batch of {say(got)} the intensity is {say(reached)} FLOP/B; the ridge is {case['ridge']}"
    if math.isinf(want) and got < 0:
        what, why = (
            "a negative batch came back where none is large enough",
            "the intensity stays below the ridge for ever",
        )
    elif math.isinf(want):
        what, why = "a batch came back where none is large enough", "the intensity stays below the ridge for ever"
    elif close(got, bytes_a_flop / 2):
        what, why = "only the weights were counted", "inputs and results move too, and they grow with the batch"
    elif close(got, bytes_a_flop / 2 * mean / (mean - bytes_a_flop / 2), rtol=1e-3):
        what, why = "inputs or results were left out", "both move, and both grow with the batch"
    elif close(got, 40 * inputs / (inputs - 80) if inputs != 80 else 0.0) or close(got, 64):
        what, why = "that is the answer for the deck's machine", "ridge and itemsize are arguments"
    elif got == math.inf:
        what, why = "there is a batch that reaches the ridge", "this layer is wide enough"
    elif got in (math.floor(want), math.ceil(want)):
        what, why = "the batch was rounded", "the ridge is reached between two whole batches: that point is asked for"
    elif close(ratio, 2.0, rtol=1e-3):
        what, why = "a multiply-add was counted as one operation, or half of the bytes", at
    elif close(ratio, 1 / itemsize, rtol=1e-3):
        what, why = "elements were counted, not bytes", at
    elif itemsize != 4 and close(ratio, 4 / itemsize, rtol=1e-3):
        what, why = "4 bytes an element were assumed for the batch", at
    else:
        what, why = "the batch is wrong", at
    return Wrong(what, why=why, next="write the intensity as a function of the batch, set it equal to the ridge, solve")


@exercise("amdahl")
class Amdahl:
    """The speed-up of the whole when some classes of operations become faster.

    `student.speedup(classes, faster)` gives the speed-up of the whole.
    """

    def raised(self, case: Any, kind: str) -> Wrong | None:
        """A class that does not become faster."""
        if kind != "KeyError" or case["classes"].keys() == case["faster"].keys():
            return None
        unchanged = [name for name in case["classes"] if name not in case["faster"]]
        return Wrong(
            "a factor was looked up for a class that has none",
            why=f"faster has no {', '.join(map(repr, unchanged[:2]))}",
            next="a class without a factor stays as it is: its time is the old one",
        )

    def probe(self, student: Any, case: Any) -> Any:
        return student.speedup({name: dict(row) for name, row in case["classes"].items()}, dict(case["faster"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got, want):
            raise _speedup_mistake(case, got, want)

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The formulas in _SPEEDUPS that give every answer that came back."""
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
        "that is so for a factor of math.inf alone",
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
]


def _speedup_mistake(case: Any, got: float, want: float) -> Wrong:
    rows, faster = case["classes"], case["faster"]
    left = {share: sum(row[share] / faster.get(name, 1.0) for name, row in rows.items()) for share in ("flop_share",)}
    if close(got * left["flop_share"], 1.0):
        what, why = "FLOPs were taken for time", "a class with 0.2 % of the FLOPs can take a quarter of the time"
    elif got and close(1 / got, want):
        what, why = "that is the share of time that is left", "a speed-up is old time over new time"
    elif got and close(100 * want, got):
        what, why = "that is a percentage", "return the factor"
    elif close(got, 100 * (want - 1)):
        what, why = "that is how many percent faster the whole is", "return old time over new time"
    else:
        what, why = "the speed-up is wrong", f"{say(got)} came back"
    return Wrong(what, why=why, next=_THEN)
