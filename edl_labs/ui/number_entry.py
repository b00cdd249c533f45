"""Numbers as people type them ("3 ms", "1e9", "1,000", "2^16"), and how far one is from another, in words."""

from __future__ import annotations

import math
import re

from edl_labs import units
from edl_labs.errors import UsageError

_PREFIXES = {"p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "": 1.0}
_LARGE = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_PREFIXES |= _LARGE | {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)}
_TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BASES = ("s", "B", "B/s", "bit/s", "FLOP", "FLOP/s", "FLOP/B")
# What people write for a unit, as the unit that is known here.
_SPELT = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "usecs", "microsecond", "microseconds"), "µs"),
    **dict.fromkeys(("nsec", "nsecs", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours", "hrs"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("byte", "bytes"), "B"),
    **dict.fromkeys(("percent", "per cent", "pct"), "%"),
    **dict.fromkeys(("x", "×", "time", "fold", "-fold", "times as long", "times faster", "times as fast"), "times"),
}
# Bits in a second: a small b after a prefix as it is written, and bps however that is. "mb/s" is nobody's millibit.
_BITS = re.compile(
    r"(?P<prefix>(?:[kKMGTPE]i?)?)b(?:/s(?:ec)?|ps)|(?P<any>(?:[kmgtpeKMGTPE]i?)?)b(?:ps|its?(?:/s(?:ec)?|ps))"
)
_SIGN = r"(?P<sign>[-+−]?)"
_GROUPING = "_'’ \u00a0\u2009\u202f"  # what people put between thousands, beside commas
_DIGITS = rf"(?:\d[\d,.{_GROUPING}]*|\.\d+)"
_POWER = r"(?P<base>\d+)\s*(?:\^|\*\*)\s*(?P<power>[-+−]?\d+)"
_PLAIN = rf"(?P<digits>{_DIGITS})(?:\s*[eE](?P<exponent>[-+−]?\d+)|\s*[·×x*]\s*10\s*(?:\^|\*\*)\s*(?P<ten>[-+−]?\d+))?"
_FRACTION = r"(?P<over>\d+)\s*/\s*(?P<under>\d+)"
_NUMBER = re.compile(
    rf"(?:about|around|roughly|ca\.?|~|≈)?\s*{_SIGN}(?:{_POWER}|{_FRACTION}|{_PLAIN})\s*(?P<unit>.*)", re.IGNORECASE
)


_SUITS = (0.1, 10_000)  # of the unit asked for: beyond, another prefix has fewer zeros


def typed_number(text: str, unit: str) -> float:
    """What was typed, in SI units: a bare number counts in `unit`, one with a unit of the same kind is converted.

    `unit` is one of time, bytes, bits, FLOP and their rates, "%", "times", "1" for a plain number, or a plural noun.

    UsageError with what, why and next where it is no number, or one of another kind.

    >>> typed_number("3 ms", "µs"), typed_number("50", "s"), typed_number("1,000", "calls"), typed_number("40", "%")
    (0.003, 50.0, 1000.0, 0.4)
    >>> typed_number("1 GB/s", "GB/s"), typed_number("1 Gb/s", "GB/s"), typed_number("8 Gbit/s", "GB/s")
    (1000000000.0, 125000000.0, 1000000000.0)
    """
    found = _NUMBER.fullmatch(text.strip())
    try:
        number = math.nan if found is None else _value(found)
    except (ValueError, OverflowError, ZeroDivisionError):
        number = math.nan
    if found is None or not math.isfinite(number):
        raise UsageError(
            f"{text.strip()[:40]!r} is not a number", why="expected a number", next=f"write a number, {example(unit)}"
        )
    named = found["unit"].strip().rstrip(".")
    value = number * (_factor(unit)[1] if not named else _converted(named, unit))
    if not math.isfinite(value):
        raise UsageError(
            f"{text.strip()[:40]!r} is too large",
            why="expected a finite number",
            next=f"write a finite number, {example(unit)}",
        )
    return value


def example(unit: str) -> str:
    """What could be typed, for a hint in an empty box."""
    return "such as 12 or 1.2e1" if unit == "1" else f"such as 12 or 1.2e1 (in {unit})"


def number_text(value: float, unit: str) -> str:
    """A number given in SI units, as a person would write it: in the question's unit where it suits.

    >>> number_text(5e-5, "ms"), number_text(0.4, "%"), number_text(12500, "tiles"), number_text(4.0, "times")
    ('50 µs', '40 %', '12,500 tiles', '4 times')
    >>> number_text(2**19, "KiB"), number_text(2**33, "KiB"), number_text(3.2e-3, "ms"), number_text(1.0, "times")
    ('512 KiB', '8 GiB', '3.2 ms', '1×')
    """
    kind, factor = _factor(unit)
    if kind in _BASES and kind != "FLOP/B" and (_SUITS[0] <= abs(value / factor) < _SUITS[1] or not value):
        return f"{value / factor:.4g} {unit}"
    if "i" in unit[:-1] and kind in ("B", "B/s"):
        power = min(5, max(0, int(math.log2(abs(value)) // 10))) if value else 0
        return f"{value / 1024**power:.4g} {'KMGTP'[power - 1] + 'i' if power else ''}{kind}"
    if kind == "s":
        return units.seconds(value)
    if kind == "%":
        return units.percent(value)
    if kind in _BASES and kind != "FLOP/B":  # a ratio, which has no prefix
        return units.si(value, kind)
    whole = f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    if unit == "times" and whole == "1":
        return "1×"  # nobody says "faster by 1 times"
    return whole if unit == "1" else f"{whole} {unit}"


def apart(said: float, true: float) -> str:
    """How far what was said is from the truth, in words.

    >>> apart(4, 3), apart(12, 3), apart(1.01, 1), apart(1, 4), apart(0, 3)
    ('33 % too much', '4 times too much', 'right to within 5 %', '4 times too little', 'not right')
    """
    if not (math.isfinite(said) and math.isfinite(true)):
        return "right" if said == true else "not right"
    if said == true or (true and abs(said - true) <= 0.05 * abs(true)):
        return "right" if said == true else "right to within 5 %"
    if not said or not true or (said > 0) != (true > 0):
        return "not right"
    ratio = abs(said / true)
    much = "too much" if said > true else "too little"
    factor = max(ratio, 1 / ratio) if ratio else math.inf
    return f"{abs(ratio - 1):.0%} {much}".replace("%", " %") if factor < 2 else f"{factor:,.3g} times {much}"


def _value(found: re.Match[str]) -> float:
    sign = -1.0 if found["sign"] in ("-", "−") else 1.0
    if found["base"]:
        return sign * float(found["base"]) ** int(found["power"].replace("−", "-"))
    if found["over"]:
        return sign * int(found["over"]) / int(found["under"])
    exponent = found["exponent"] or found["ten"] or "0"
    return sign * float(f"{_plain(found['digits'])}e{int(exponent.replace('−', '-'))}")


def _plain(digits: str) -> str:
    """Digits without what groups them: a comma before three digits groups, any other one is a decimal point."""
    digits = re.sub(f"[{_GROUPING}]", "", digits).rstrip(".,")
    if "." not in digits and re.fullmatch(r"\d+,\d+", digits) and not re.fullmatch(r"[1-9]\d{0,2},\d{3}", digits):
        return digits.replace(",", ".")
    return digits.replace(",", "")


def _factor(unit: str) -> tuple[str, float]:
    """What a unit measures, and how many of the SI unit it is: ("s", 0.001) for "ms"; a noun measures itself."""
    if unit in _TIMES:
        return "s", _TIMES[unit]
    if unit == "%":
        return "%", 0.01
    for base in _BASES:
        prefix = unit[: -len(base)]
        # Nobody means a thousandth of a byte: "mb/s" is read as MB/s further on, "Mb/s" as bits.
        if unit.endswith(base) and prefix in _PREFIXES and (base == "s" or _PREFIXES[prefix] >= 1):
            return base, _PREFIXES[prefix]
    return unit, 1.0


def _converted(named: str, unit: str) -> float:
    """The factor of the unit that was typed; UsageError where it does not measure what is asked for."""
    kind, _ = _factor(unit)
    if (bits := _BITS.fullmatch(named)) and kind in ("B/s", "bit/s"):
        prefix = bits["prefix"] or bits["any"] or ""
        return _PREFIXES[prefix[:1].upper() + prefix[1:]] / (8 if kind == "B/s" else 1)
    for spelling in (named, _SPELT.get(named.lower(), named), *_other_cases(named)):
        if _factor(spelling)[0] == kind:
            return _factor(spelling)[1]
    if kind not in (*_BASES, "%") and named.rstrip("s").lower() == unit.rstrip("s").lower():
        return 1.0
    asked = f"the question asks for {'a plain number' if unit == '1' else f'a number in {unit}'}"
    raise UsageError(
        f"{named[:20]!r} is not the unit of the question", why=asked, next=f"write the number, {example(unit)}"
    )


def _other_cases(named: str) -> list[str]:
    """The same unit as others write it: Gflops, GFLOPS, gb/s."""
    text = re.sub(r"flops?(/s|ps)?$", "FLOP/s" if re.search(r"(s|/s)$", named, re.I) else "FLOP", named, flags=re.I)
    text = re.sub(r"b(ytes?)?(/s(ec)?|ps)$", "B/s", text, flags=re.I) if "it" not in named else text
    text = re.sub(r"^([kmgtpe]i?)b$", lambda found: f"{found[1]}B", text)  # "mb", "mib"; "Mb" would be bits
    return [text, text[:1].upper() + text[1:], text[:1].lower() + text[1:]]
