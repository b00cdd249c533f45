"""Text for SI quantities. Inside the library everything is SI; milliseconds and GB/s exist only here."""

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
    """A duration given in seconds, in the unit people would say.

    >>> seconds(1.24e-5), seconds(90), seconds(7200), seconds(9 * 86400)
    ('12.4 µs', '1.5 min', '2 h', '9 d')
    """
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if abs(value) >= 1.5 * size and math.isfinite(value):
            return f"{_significant(value / size, digits)} {name}"
    return si(value, "s", digits=digits)


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


def _significant(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
