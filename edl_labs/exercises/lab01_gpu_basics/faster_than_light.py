"""faster_than_light: a time is refused, in words, or is a fraction of the speed of light."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong

_KEPT_UNSAID = 0.75  # when to raise is the exercise, and what to say a part of it


@exercise("faster_than_light")
class FasterThanLight(Exercise):
    """Refuse a time that no machine can reach; otherwise say how close to the bound it came.

    `student.fraction_of_light(time_s, ...)` raises ValueError for an impossible time, else gives a fraction.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        work = {name: value for name, value in given.items() if name != "time_s"}
        try:
            fraction = student.fraction_of_light(given["time_s"], **work)
        except ValueError as error:
            return {"refused": True, "is_explained": bool(str(error).strip()), "fraction": 0.0}
        return {"refused": False, "is_explained": False, "fraction": fraction}

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """An impossible time that was refused with something else, or divided by."""
        if error == "ZeroDivisionError" and case["time_s"] == 0 < max(_bounds_s(case)):
            why = (
                "your code raised ZeroDivisionError instead of ValueError: it divides by time_s before it refuses zero"
            )
            then = "check time_s first: refuse zero, and negative times as well, before the division"
            return Wrong("your code divides by a time of zero instead of refusing it", why=why, next=then)
        if error not in ("Exception", "RuntimeError", "AssertionError", "ArithmeticError", "OverflowError"):
            return None
        why = "the caller catches only ValueError; any other exception may be a bug"
        return Wrong(f"your code raised {error} instead of ValueError", why=why, next="write `raise ValueError(...)`")

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if want["refused"] and not got["refused"]:
            raise _let_through(case)
        if got["refused"] and not want["refused"]:
            raise _wrongly_refused(case)
        if not close(got["fraction"], want["fraction"], rtol=1e-6, atol=1e-12):
            raise _wrong_fraction(case, got["fraction"], want["fraction"])
        if want["refused"] and not got["is_explained"]:
            why = (
                "your code raised ValueError without a message, so the reader must guess what is wrong, and with "
                "which time"
            )
            then = 'raise ValueError("…"), with a text that says what is impossible'
            raise Wrong("the error has no message", why=why, next=then, keeps=_KEPT_UNSAID)

    def format_answer(self, case: Any, got: Any) -> str:
        """What came of the time, in words."""
        if not got["refused"]:
            return f"a fraction of {got['fraction']:.7g}"
        return "ValueError" if got["is_explained"] else "ValueError, without a message"

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another bound than the larger one, that all answers follow."""
        for bound, what, why in _OTHER_BOUNDS:
            expected = [_by_bound(case["time_s"], bound(_bounds_s(case))) for case in cases]
            if all(_same_light(one, other) for one, other in zip(got, expected, strict=True)):
                return Wrong(
                    what,
                    why=why,
                    next="what is the shortest possible time if moving and computing happen at the same time?",
                )
        if all(_is_mean(case, *both) for case, *both in zip(cases, got, want, strict=True)):
            why = "every fraction is halfway between the fraction of the bandwidth and the fraction of the peak"
            then = (
                "use only the slower of memory and arithmetic: it sets the bound, and the other may be "
                "far from its limit"
            )
            return Wrong("your code averages two fractions", why=why, next=then)
        return None


def _let_through(case: Any) -> Wrong:
    if case["time_s"] <= 0:
        what = "your code accepted a time of zero or less"
    elif case["time_s"] > 0.99 * max(*_bounds_s(case)):
        what = "your code accepted a time just below the bound"
    elif case["time_s"] < case["moved_bytes"] / case["bandwidth_byte_per_s"]:
        what = "your code accepted a time below the memory's bound"
    else:
        what = "your code accepted a time below the arithmetic's bound"
    return Wrong(
        what,
        why="no correct measurement of that much work can be so short",
        next="raise ValueError when the time is below the larger of the two bounds",
    )


def _bounds_s(case: Any) -> tuple[float, float]:
    """How long the bytes take alone, and the arithmetic."""
    return case["moved_bytes"] / case["bandwidth_byte_per_s"], case["flop"] / case["peak_flop_per_s"]


_OTHER_BOUNDS = (
    (sum, "your code adds the two bounds", "your bound is their sum, but moving and computing happen at the same time"),
    (
        min,
        "your code uses the smaller of the two bounds",
        "a time must be long enough for the slower of moving and computing",
    ),
)


def _by_bound(time_s: float, bound_s: float) -> dict[str, Any]:
    """What a function says that holds times against `bound_s`."""
    refused = time_s <= 0 or time_s < bound_s
    return {"refused": refused, "fraction": 0.0 if refused else bound_s / time_s}


def _same_light(got: Any, want: Any) -> bool:
    return got["refused"] == want["refused"] and close(got["fraction"], want["fraction"], rtol=1e-6, atol=1e-12)


def _is_mean(case: Any, got: Any, want: Any) -> bool:
    """Whether what ought to be refused was, and the mean of the two bounds came back as if it were the bound."""
    if got["refused"] or want["refused"]:
        return bool(got["refused"] == want["refused"])
    return close(got["fraction"], sum(_bounds_s(case)) / 2 / case["time_s"], rtol=1e-6, atol=1e-12)


def _wrongly_refused(case: Any) -> Wrong:
    move_s, compute_s = _bounds_s(case)
    then = "what is the shortest possible time if moving and computing happen at the same time?"
    if case["time_s"] == max(move_s, compute_s):
        what, why = "your code refused a time exactly at the bound", "a time equal to the bound is rare, but possible"
        then = "refuse only a time that is shorter than the bound, not one that equals it"
    elif case["time_s"] < move_s + compute_s:
        what, why = "your code refused a possible time", "moving and computing can happen at the same time"
    else:
        what, why = "your code refused a slow time", "the time is at least the sum of both bounds"
    return Wrong(what, why=why, next=then)


def _wrong_fraction(case: Any, fraction: Any, right: float) -> Wrong:
    move_s, compute_s = _bounds_s(case)
    if right and close(fraction, 1 / right):
        what, why = (
            "your answer is a slow-down factor, not a fraction",
            "the fraction of the speed of light is at most 1",
        )
    elif close(fraction, 100 * right):
        what, why = "your answer is a percentage", "expected a fraction, which is at most 1"
    elif close(fraction, (move_s + compute_s) / case["time_s"]):
        what, why = "your code adds the two bounds", "moving and computing happen at the same time"
    elif close(fraction, move_s / case["time_s"]):
        what, why = "your code looks only at the memory's bound", "here the arithmetic takes longer"
    elif close(fraction, compute_s / case["time_s"]):
        what, why = "your code looks only at the arithmetic's bound", "here the memory takes longer"
    else:
        what, why = "the fraction is wrong", "expected the shortest possible time divided by the measured one"
    return Wrong(
        what,
        why=why,
        next="which of the two bounds counts here, and which way round must you divide so that "
        "the result is at most 1?",
    )
