"""Numbers with their doubt as text: no more digits than the interval supports."""

from __future__ import annotations

import math

from edl_labs.units import seconds


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
    percent = 100 * relative_half_width
    if percent == 0:
        return "± 0 %"
    if percent < 0.001:
        return "± < 0.001 %"
    places = max(0, -math.floor(math.log10(percent)))
    return f"± {percent:.{places}f} %"


def time_text(median_s: float, relative_half_width: float) -> str:
    """A time with its doubt.

    >>> time_text(0.0123961, 0.031)
    '12.4 ms ± 3 %'
    """
    return f"{seconds(median_s, digits=supported_digits(relative_half_width))} {doubt(relative_half_width)}"


def ratio_text(ratio: float, low: float, high: float) -> str:
    """A ratio with its interval, cut to the digits that the interval supports.

    >>> ratio_text(1.01234, 1.0101, 1.0152), ratio_text(0.5, 0.0, float("inf"))
    ('1.012 [1.010, 1.015]', '0.5 [no interval]')
    """
    if not (math.isfinite(high) and math.isfinite(low) and low > 0):
        return f"{ratio:.2g} [no interval]"
    half = (high - low) / 2
    if half >= 1:
        return f"{ratio:.2g} [{low:.2g}, {high:.2g}]"
    places = 4 if half <= 0 else min(6, max(1, -math.floor(math.log10(half))))
    return f"{ratio:.{places}f} [{low:.{places}f}, {high:.{places}f}]"
