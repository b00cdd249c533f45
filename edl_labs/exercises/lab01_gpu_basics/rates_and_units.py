"""peak_from_clock and petabyte: rates and units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong


@exercise("peak_from_clock")
class PeakFromClock(Exercise):
    """Peak FLOP/s of a chip from its SMs, multiply-adds per clock and clock.

    `student.peak_flop_per_s(row, dtype, sm_count=, clock_mhz=)` gives FLOP/s on the faster unit, or 0.0.
    """

    answers = "all"

    skip_type_check = True  # None, for a dtype that is not there, has a sentence of its own

    def probe(self, student: Any, given: Any) -> Any:
        return student.peak_flop_per_s(
            given["row"], given["dtype"], sm_count=given["sm_count"], clock_mhz=given["clock_mhz"]
        )

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """A look-up of a dtype that a unit does not have."""
        if error in ("ValueError", "LookupError") and not any(case["dtype"] in unit for unit in case["row"].values()):
            why = f"asked for {case['dtype']}, which no unit of this SM has"
            return Wrong(f"{error} was raised; expected 0.0", why=why, next="return 0.0 then")
        if error != "KeyError" or all(case["dtype"] in unit for unit in case["row"].values()):
            return None
        return Wrong(
            "your code raised KeyError for a dtype that a unit does not have",
            why=f"asked for {case['dtype']} on an SM with {case['row']}",
            next="a unit without the dtype does 0 operations per clock; when neither unit has it, return 0.0",
        )

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got is None and not want:
            why = f"asked for {case['dtype']} on an SM with {case['row']}"
            raise Wrong("None came back for a dtype that the SM does not have", why=why, next="return 0.0 then")
        if close(got, want, rtol=1e-9):
            return
        if not isinstance(got, (int, float)):
            raise Wrong("expected a number of FLOP/s", why=f"{str(got)[:30]} came back", next="return the rate")
        ratio = got / want if want else float("inf")
        why = f"asked for {case['dtype']} on an SM with {case['row']}"
        raise Wrong(*_peak_mistake(case, ratio), why=why, next=_peak_next(ratio, want))

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What multiply-adds a clock all answers would need, or what they all leave unread."""
        answers = [one for one in zip(cases, got, want, strict=True) if type(one[1]) in (int, float)]
        wrong = [(case, answer, right) for case, answer, right in answers if not close(answer, right, rtol=1e-9)]
        if len(answers) < len(cases) or len(wrong) < _ENOUGH:
            return None
        for fits, what, why, then in _OTHER_RATES:
            if fits(wrong):
                return Wrong(what, why=why, next=then)
        return None


_ENOUGH = 3  # cases that fit another rate by luck are rarer than that
_Answers = list[tuple[Any, Any, Any]]  # the case, what came, what is right


def _counts(case: Any) -> list[int]:
    return [unit.get(case["dtype"], 0) for unit in case["row"].values()]


def _takes_the_slower(wrong: _Answers) -> bool:
    """Only where both units have the dtype, and always the smaller of the two."""
    return all(
        min(_counts(case)) > 0 and close(answer, right * min(_counts(case)) / max(_counts(case)), rtol=1e-9)
        for case, answer, right in wrong
    )


def _takes_the_largest(wrong: _Answers) -> bool:
    """The largest number of the row, whatever the dtype; where no unit has it, any rate but 0."""
    for case, answer, right in wrong:
        largest = max(count for unit in case["row"].values() for count in unit.values())
        if right and not close(answer, right * largest / max(_counts(case)), rtol=1e-9):
            return False
    return True


def _reads_no_machine(wrong: _Answers) -> bool:
    """Answers that follow the multiply-adds alone: what is left is the same for all machines."""
    rates = [answer / max(_counts(case)) for case, answer, right in wrong if right]
    machines = {(case["sm_count"], case["clock_mhz"]) for case, _, right in wrong if right}
    return (
        len(machines) > 1 and bool(rates) and rates[0] > 0 and all(close(rate, rates[0], rtol=1e-9) for rate in rates)
    )


_OTHER_RATES: tuple[tuple[Callable[[_Answers], bool], str, str, str], ...] = (
    (
        _takes_the_slower,
        "the slower unit was taken",
        "wherever both units have the dtype and it is wrong: the slower one, or the first that was found",
        "look at both units, and take the larger number",
    ),
    (
        _takes_the_largest,
        "the rate of another dtype was taken",
        "the largest number of the row was returned for every dtype",
        "look the dtype up in each unit",
    ),
    (
        _reads_no_machine,
        "sm_count and clock_mhz were not used",
        "the answers grow with the multiply-adds alone, as if all machines were one",
        "take both from the arguments; the A100 of the text is one machine",
    ),
)


@exercise("petabyte")
class Petabyte(Exercise):
    """How long an amount of data takes over a link, whatever units the two are written in.

    `student.transfer_s(size, rate, efficiency=)` gives seconds, for sizes like '1 PB' and rates like '6 Gbit/s'.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        if given["efficiency"] is None:  # left to the function's own default
            return student.transfer_s(given["size"], given["rate"])
        return student.transfer_s(given["size"], given["rate"], efficiency=given["efficiency"])

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """A look-up of a unit without a prefix; the first of these is a size in bits as well."""
        bare = [text for text in (case["size"], case["rate"]) if text.split()[1] in _BARE_UNITS]
        if error not in ("KeyError", "IndexError") or not bare:
            return None
        why = f"asked for {case['size']} over {case['rate']}: a unit may have no prefix"
        if bare[0].endswith("bit"):
            why = f"{why}, and a size may be in bits; your code misses one or the other"
        then = "take 'bit' or 'B' off the end, and what is left is the prefix: FACTOR holds the empty one too"
        return Wrong(f"your code raised {error} for a unit without a prefix", why=why, next=then)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got, want, rtol=1e-6):
            raise _transfer_mistake(case, got / want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What was done to every answer, where one case alone does not tell it."""
        why, both = "every answer is a whole number", list(zip(got, want, strict=True))
        if all(close(one, 1 / right) for one, right in both):
            return Wrong("rate over size came back", why="it is upside down in all answers", next="size over rate")
        if all(one == round(one) and abs(one - right) < 1 for one, right in both):
            return Wrong("the time was rounded to whole seconds", why=why, next="return the time as it is")
        powers = [_decimal_power(case["size"]) - _decimal_power(case["rate"]) for case in cases]
        if all(close(one, right * 1.024**power) for (one, right), power in zip(both, powers, strict=True)):
            why = "k, M, G, T and P are powers of 1000; Ki, Mi, Gi, Ti and Pi are powers of 1024"
            return Wrong("a decimal prefix was read as a binary one", why=why, next="1 PB is how many bytes?")
        return None


_BARE_UNITS = ("B", "bit", "B/s", "bit/s")


def _peak_mistake(case: Any, ratio: float) -> tuple[str]:
    counts = [unit.get(case["dtype"], 0) for unit in case["row"].values()]
    if ratio == float("inf"):
        return ("a rate came back for a dtype that the SM does not have",)
    if close(ratio, 0.5):
        return ("a fused multiply-add was counted as one operation",)
    if close(ratio, 1e-6):
        return ("the clock was taken as Hz",)
    if close(ratio, 1e-12):
        return ("TFLOP/s came back",)
    if close(ratio, sum(counts) / max(counts)):
        return ("the two units were added up",)
    if close(ratio, min(counts) / max(counts)):
        return ("the slower unit was taken",)
    return ("the peak is wrong",)


def _peak_next(ratio: float, want: float) -> str:
    if not want:
        return "return 0.0 when neither unit has the dtype"
    if close(ratio, 0.5):
        return "how many floating-point operations are in a·b + c?"
    if ratio < 1e-5:
        return "inside, everything is SI: clocks in Hz, rates in FLOP/s"
    return "SMs × multiply-adds per clock of the faster unit × 2 × clock in Hz"


def _decimal_power(amount: str) -> int:
    """Of 1000, in the prefix of an amount such as '6 Gbit/s'; 0 where it has none, or a binary one."""
    unit = amount.split()[1]
    return 0 if unit[1] == "i" and unit[0] in "KMGTP" else "kMGTP".find(unit[0]) + 1


_BYTES_CODED = "the line code was left out of a rate in bytes"


def _transfer_mistake(case: Any, ratio: float) -> Wrong:
    binary = any(unit.split()[1][1:2] == "i" for unit in (case["size"], case["rate"]))
    efficiency = 1.0 if case["efficiency"] is None else case["efficiency"]
    known = [
        (8.0, "bit" in case["size"], "a size in bits was read as bytes", "which letter follows the prefix?"),
        (1 / 8, "bit" in case["rate"], "a rate in bits was read as bytes", "which letter follows the prefix?"),
        (1 / 8 * efficiency, "bit" in case["rate"], "a rate in bits was read as bytes", "bit or B?"),
        (8.0, "bit" not in case["rate"], "a rate in bytes was read as bits", "which letter follows the prefix?"),
        (efficiency, "bit" not in case["rate"], _BYTES_CODED, "does the line care how its rate is written?"),
        (efficiency, True, "the line code was left out", "only part of the line's bits carry data"),
        (efficiency**2, True, "the line code was applied the wrong way", "does it make a link faster?"),
        (1e3, True, "milliseconds came back", "return seconds; text is made elsewhere"),
        (1e6, True, "microseconds came back", "return seconds; text is made elsewhere"),
        (1 / 60, True, "minutes came back", "return seconds; text is made elsewhere"),
        (1 / 3600, True, "hours came back", "return seconds; text is made elsewhere"),
        (1 / 86400, True, "days came back", "return seconds; text is made elsewhere"),
    ]
    for factor, applies, what, then in known:
        if applies and factor != 1 and close(ratio, factor):
            return Wrong(what, why=f"{case['size']} over {case['rate']} was asked for", next=then)
    if binary and 0.7 < ratio < 1.4:
        why = "Ki, Mi, Gi, Ti and Pi are powers of 1024; k, M, G, T and P are powers of 1000"
        return Wrong("a binary prefix was read as a decimal one", why=why, next="1 PiB is how many bytes?")
    return Wrong(
        "the transfer time is wrong",
        why=f"{case['size']} over {case['rate']} at an efficiency of {efficiency:.4g} was asked for",
        next="turn both into bytes first, then divide",
    )
