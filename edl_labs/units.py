"""Text for SI quantities and for numbers with their doubt.

Inside the library everything is SI; milliseconds and GB/s exist only here."""

from __future__ import annotations

import math

_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
_LARGE = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def si(value: float, unit: str, *, digits: int = 3) -> str:
    """`value` with a decimal SI prefix, at `digits` significant digits.

    >>> si(3.12e14, "FLOP/s"), si(0.0000124, "s"), si(0, "B"), si(float("nan"), "s")
    ('312 TFLOP/s', '12.4 µs', '0 B', 'nan s')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    magnitude = abs(value)
    steps = _LARGE if magnitude >= 1 else _SMALL
    scale, prefix = next(((s, p) for s, p in steps if magnitude >= s * (1 - 0.5 * 10**-digits)), steps[-1])
    return f"{_significant(value / scale, digits)} {prefix}{unit}"


def seconds(value: float, *, digits: int = 3) -> str:
    """A duration in seconds as text, in the usual unit.

    >>> seconds(1.24e-5), seconds(90), seconds(7200), seconds(9 * 86400)
    ('12.4 µs', '1.5 min', '2 h', '9 d')
    """
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if abs(value) >= 1.5 * size and math.isfinite(value):
            return f"{_significant(value / size, digits)} {name}"
    return si(value, "s", digits=digits)


def seconds_apart(one: float, other: float) -> tuple[str, str]:
    """Two durations in as many digits as tell them apart, in 9 at most.

    >>> seconds_apart(0.1014, 0.1009), seconds_apart(0.1, 0.2)
    (('101.4 ms', '100.9 ms'), ('100 ms', '200 ms'))
    """
    for digits in range(3, 10):
        texts = seconds(one, digits=digits), seconds(other, digits=digits)
        if texts[0] != texts[1]:
            break
    return texts


def byte_count(value: float, *, digits: int = 3) -> str:
    """A number of bytes with a decimal prefix: 40e6 is 40 MB."""
    return si(value, "B", digits=digits)


def flop_rate(value: float, *, digits: int = 3) -> str:
    """A rate in FLOP/s with a decimal prefix."""
    return si(value, "FLOP/s", digits=digits)


def byte_rate(value: float, *, digits: int = 3) -> str:
    """A rate in B/s with a decimal prefix."""
    return si(value, "B/s", digits=digits)


def percent(fraction: float, *, digits: int = 3) -> str:
    """A fraction as per cent.

    >>> percent(0.5046)
    '50.5 %'
    """
    return f"{_significant(100 * fraction, digits)} %"


def supported_digits(relative_half_width: float) -> int:
    """How many significant digits an interval of this relative half-width supports: 2 to 5.

    >>> [supported_digits(w) for w in (0.2, 0.03, 0.004, 0.0002, 0.0)]
    [2, 3, 4, 5, 5]
    """
    if not math.isfinite(relative_half_width):
        return 2
    if relative_half_width <= 0:
        return 5
    return min(5, max(2, math.ceil(-math.log10(relative_half_width)) + 1))


def doubt(relative_half_width: float) -> str:
    """A relative half-width in per cent, at one digit.

    >>> doubt(0.031), doubt(0.0024), doubt(float("inf")), doubt(0.0)
    ('± 3 %', '± 0.2 %', '(no interval)', '± 0 %')
    """
    if not math.isfinite(relative_half_width):
        return "(no interval)"
    per_cent = 100 * relative_half_width
    if per_cent == 0:
        return "± 0 %"
    if per_cent < 0.001:
        return "± < 0.001 %"
    places = max(0, -math.floor(math.log10(per_cent)))
    return f"± {per_cent:.{places}f} %"


def time_text(median_s: float, relative_half_width: float) -> str:
    """A time with its doubt.

    >>> time_text(0.0123961, 0.031)
    '12.4 ms ± 3 %'
    """
    return f"{seconds(median_s, digits=supported_digits(relative_half_width))} {doubt(relative_half_width)}"


def ratio_text(ratio: float, low: float, high: float) -> str:
    """A ratio with its interval: three digits that count, or as many more as the interval supports.

    >>> ratio_text(1.01234, 1.0101, 1.0152), ratio_text(0.4263, 0.3121, 0.5408), ratio_text(0.5, 0.0, float("inf"))
    ('1.012 [1.010, 1.015]', '0.426 [0.312, 0.541]', '0.5 [no interval]')
    """
    if not (math.isfinite(high) and math.isfinite(low) and low > 0):
        return f"{ratio:.2g} [no interval]"
    half = (high - low) / 2
    if half >= 1:
        return f"{ratio:.3g} [{low:.3g}, {high:.3g}]"
    supported = 4 if half <= 0 else -math.floor(math.log10(half))
    places = min(6, max(supported, 2 - math.floor(math.log10(ratio)) if ratio > 0 else 0, 0))
    return f"{ratio:.{places}f} [{low:.{places}f}, {high:.{places}f}]"


def counted(number: float, noun: str) -> str:
    """A number with its noun, in the plural if needed.

    >>> counted(1, "cell"), counted(3, "cell"), counted(1.5, "day"), counted(2, "batch")
    ('1 cell', '3 cells', '1.5 days', '2 batches')
    """
    digits = f"{number:g}" if isinstance(number, float) else str(number)
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{digits} {noun}{'' if number == 1 else ending}"


def _significant(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
