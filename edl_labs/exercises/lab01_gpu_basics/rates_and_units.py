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
            why = f"the case asks for {case['dtype']}, which no unit of this SM has"
            return Wrong(
                f"your code raised {error}; expected 0.0", why=why, next="return 0.0 when neither unit has the dtype"
            )
        if error != "KeyError" or all(case["dtype"] in unit for unit in case["row"].values()):
            return None
        return Wrong(
            "your code raised KeyError for a dtype that a unit does not have",
            why=f"the case asks for {case['dtype']} on an SM with {case['row']}",
            next="count 0 operations per clock for a unit without the dtype; when neither unit has it, return 0.0",
        )

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got is None and not want:
            why = f"the case asks for {case['dtype']} on an SM with {case['row']}"
            what = "your function returned None for a dtype that the SM does not have"
            raise Wrong(what, why=why, next="return 0.0 when neither unit has the dtype")
        if close(got, want, rtol=1e-9):
            return
        if not isinstance(got, (int, float)):
            raise Wrong(
                "expected a number of FLOP/s", why=f"your function returned {str(got)[:30]}", next="return the rate"
            )
        why = f"the case asks for {case['dtype']} on an SM with {case['row']}"
        if not want:
            what = "your function returned a rate for a dtype that the SM does not have"
            raise Wrong(what, why=why, next="return 0.0 when neither unit has the dtype")
        then = "multiply the SMs by the multiply-adds per clock of the faster unit, by 2 and by the clock in Hz"
        raise Wrong("the peak is wrong", why=f"{why}: expected {want:.6g} FLOP/s, got {got:.6g}", next=then)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What multiply-adds a clock all answers would need, or what they all leave unread."""
        answers = [one for one in zip(cases, got, want, strict=True) if type(one[1]) in (int, float)]
        wrong = [(case, answer, right) for case, answer, right in answers if not close(answer, right, rtol=1e-9)]
        if len(answers) < len(cases):
            return None
        for factor, what, why, then in _FACTORS:
            if all(close(answer, right * factor(case), rtol=1e-9) for case, answer, right in answers):
                return Wrong(what, why=why, next=then)
        for fits, what, why, then in _OTHER_RATES if len(wrong) >= _ENOUGH else ():
            if fits(wrong):
                return Wrong(what, why=why, next=then)
        return None


_ENOUGH = 3  # cases that fit another rate by luck are rarer than that
_Answers = list[tuple[Any, Any, Any]]  # the case, what came, what is right


def _counts(case: Any) -> list[int]:
    return [unit.get(case["dtype"], 0) for unit in case["row"].values()]


def _of_unit(name: str) -> Callable[[Any], float]:
    return lambda case: case["row"].get(name, {}).get(case["dtype"], 0) / (max(_counts(case)) or 1)


def _of_both(case: Any) -> float:
    return sum(_counts(case)) / (max(_counts(case)) or 1)


_SI = "use SI units inside the function: clocks in Hz, rates in FLOP/s"
# What every right answer would have to be multiplied by, what was done then, why, and what to do.
_FACTORS: tuple[tuple[Callable[[Any], float], str, str, str], ...] = (
    (
        lambda case: 0.5,
        "your code counts a fused multiply-add as one operation",
        "all answers are half of the peak",
        "how many floating-point operations are in a·b + c?",
    ),
    (lambda case: 1e-6, "your code treats the clock as Hz", "all answers are a millionth of the peak", _SI),
    (lambda case: 1e3, "your code treats the clock as GHz", "all answers are 1000 times the peak", _SI),
    (lambda case: 1e-12, "your answers are in TFLOP/s", "all answers are the peak in units of 1e12 FLOP/s", _SI),
    (
        _of_both,
        "your code adds up the rates of the two units",
        "wherever both units have the dtype, the answer is the sum of their rates",
        "a kernel of one dtype runs on the faster unit: use the larger number",
    ),
    (
        lambda case: _of_unit("tensor")(case) or _of_unit("cuda")(case),
        "your code chooses the slower unit",
        "wherever the tensor cores have the dtype, your answer is their rate, even if the CUDA cores are faster",
        "look at both units, and use the larger number",
    ),
    (
        _of_unit("cuda"),
        "your code looks only at the CUDA cores",
        "every answer is the rate of the CUDA cores, or 0 if they do not have the dtype",
        "look at both units, and use the larger number",
    ),
    (
        _of_unit("tensor"),
        "your code looks only at the tensor cores",
        "every answer is the rate of the tensor cores, or 0 if they do not have the dtype",
        "look at both units, and use the larger number",
    ),
)


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
        "your code chooses the slower unit",
        "every wrong answer is the rate of the slower unit: perhaps "
        "your code chooses it, or the first unit that it finds",
        "look at both units, and use the larger number",
    ),
    (
        _takes_the_largest,
        "your code uses the rate of another dtype",
        "your answers follow from the largest number in the row, whatever the dtype",
        "look up the dtype in each unit",
    ),
    (
        _reads_no_machine,
        "your code does not use sm_count and clock_mhz",
        "your answers depend only on the multiply-adds: they are the same for every machine",
        "use both arguments; the A100 in the text is only one example",
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
        why = f"the case is {case['size']} over {case['rate']}: a unit may have no prefix"
        if bare[0].endswith("bit"):
            why = f"{why}, and a size may be in bits; your code does not handle one of the two"
        then = "remove 'bit' or 'B' from the end: the rest is the prefix, and FACTOR contains the empty prefix, too"
        return Wrong(f"your code raised {error} for a unit without a prefix", why=why, next=then)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got, want, rtol=1e-6):
            raise _transfer_mistake(case, got, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What was done to every answer, where one case alone does not tell it."""
        why, both = "every answer is a whole number", list(zip(got, want, strict=True))
        if all(close(one, 1 / right) for one, right in both):
            return Wrong(
                "your function returned rate over size",
                why="every answer is the inverse of the time",
                next="divide size by rate",
            )
        if all(one == round(one) and abs(one - right) < 1 for one, right in both):
            return Wrong(
                "your function rounds the time to whole seconds", why=why, next="return the time without rounding it"
            )
        for factor, what, why, then in _OTHER_TIMES:
            if all(close(one, right * factor(case)) for case, (one, right) in zip(cases, both, strict=True)):
                return Wrong(what, why=why, next=then)
        return None


def _over(of: Callable[[str], float]) -> Callable[[Any], float]:
    """What times are multiplied by where each amount is multiplied by `of` it."""
    return lambda case: of(case["size"]) / of(case["rate"])


def _power(amount: str, *, binary: bool) -> int:
    """The power of 1000, or of 1024, in the prefix of an amount such as '6 Gbit/s'; 0 where it has no such prefix."""
    unit = amount.split()[1]
    is_binary = unit[1:2] == "i" and unit[0] in "KMGTP"
    return "kMGTP".find(unit[0].replace("K", "k")) + 1 if is_binary == binary else 0


def _one_power_less(amount: str) -> float:
    return 1000.0 ** -(_power(amount, binary=False) > 0) * 1024.0 ** -(_power(amount, binary=True) > 0)


def _whole(amount: str) -> float:
    number = float(amount.split()[0])
    return int(number) / number


def _share(case: Any) -> float:
    return 1.0 if case["efficiency"] is None else float(case["efficiency"])


_BOTH_KINDS = "k, M, G, T and P are powers of 1000; Ki, Mi, Gi, Ti and Pi are powers of 1024"
# What every right time would have to be multiplied by, what was done then, why, and what to do.
_OTHER_TIMES: tuple[tuple[Callable[[Any], float], str, str, str], ...] = (
    (
        _over(lambda amount: 1.024 ** _power(amount, binary=False)),
        "your code reads a decimal prefix as a binary one",
        _BOTH_KINDS,
        "how many bytes is 1 PB?",
    ),
    (
        _over(lambda amount: 1.024 ** -_power(amount, binary=True)),
        "your code reads a binary prefix as a decimal one",
        _BOTH_KINDS,
        "how many bytes is 1 PiB?",
    ),
    (
        _over(_one_power_less),
        "your code uses one power of 1000 or 1024 too few for each prefix",
        "all times are those that k = 1, M = 1000, Ki = 1 and Mi = 1024 would give",
        "print FACTOR: what are the factors of k and of Ki?",
    ),
    (
        _over(_whole),
        "your code truncates an amount to a whole number",
        "all times are those of amounts without the digits after the decimal point",
        "read the number in '1.5 TiB' as 1.5",
    ),
    (
        lambda case: (2 - _share(case)) * _share(case),
        "your code adds the share of lost bits to the time",
        "all times are too short by a factor of e · (2 − e), where e is the efficiency",
        "if a share e of the bits carries data, how many bits does the line send for one bit of data?",
    ),
    (
        lambda case: _share(case) ** 2,
        "your code applies the line code the wrong way round",
        "all times are shorter than on a line without a code",
        "does a line code make a link faster?",
    ),
)


_BARE_UNITS = ("B", "bit", "B/s", "bit/s")


_BYTES_CODED = "your code does not apply efficiency to a rate in bytes"


def _transfer_mistake(case: Any, got: float, want: float) -> Wrong:
    ratio, efficiency = got / want, _share(case)
    decimal = _over(lambda amount: 1.024 ** -_power(amount, binary=True))(case)
    known = [
        (8.0, "bit" in case["size"], "your code reads a size in bits as bytes", "which letter follows the prefix?"),
        (1 / 8, "bit" in case["rate"], "your code reads a rate in bits as bytes", "which letter follows the prefix?"),
        (1 / 8 * efficiency, "bit" in case["rate"], "your code reads a rate in bits as bytes", "is the unit bit or B?"),
        (8.0, "bit" not in case["rate"], "your code reads a rate in bytes as bits", "which letter follows the prefix?"),
        (
            efficiency,
            "bit" not in case["rate"],
            _BYTES_CODED,
            "does the efficiency of the line depend on the unit in which its rate is written?",
        ),
        (efficiency, True, "your code does not apply efficiency", "what share of the line's bits carries data?"),
        (
            efficiency**2,
            True,
            "your code applies the line code the wrong way round",
            "does a line code make a link faster?",
        ),
        (decimal, True, "your code reads a binary prefix as a decimal one", "how many bytes is 1 PiB?"),
        (1e3, True, "your times are in milliseconds", "return the time in seconds"),
        (1e6, True, "your times are in microseconds", "return the time in seconds"),
        (1 / 60, True, "your times are in minutes", "return the time in seconds"),
        (1 / 3600, True, "your times are in hours", "return the time in seconds"),
        (1 / 86400, True, "your times are in days", "return the time in seconds"),
    ]
    for factor, applies, what, then in known:
        if applies and factor != 1 and close(ratio, factor):
            return Wrong(what, why=f"the case asks for {case['size']} over {case['rate']}", next=then)
    return Wrong(
        "the transfer time is wrong",
        why=f"{case['size']} over {case['rate']} at an efficiency of {efficiency:.4g}: expected {want:.6g} s, got "
        f"{got:.6g} s",
        next="convert size and rate to bytes first, then divide",
    )
