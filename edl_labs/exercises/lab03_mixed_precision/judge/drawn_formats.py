"""The cases of encode_decode, where_it_breaks and static_scale: drawn formats, codes, values and histograms."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Case, case_source

_FIELDS = ("name", "exponent_bits", "mantissa_bits", "bias", "has_inf", "rounding")


NAMED = tuple(
    dict(zip(_FIELDS, one, strict=True))
    for one in (
        ("fp16", 5, 10, 15, True, "nearest"),
        ("bf16", 8, 7, 127, True, "nearest"),
        ("e4m3fn", 4, 3, 7, False, "nearest"),
        ("e5m2", 5, 2, 15, True, "nearest"),
    )
)


_DRAWN = 9  # formats beside those that have a name


# Far below any tie, and still exact in a double beside eleven bits of significand.
_HAIR = 2.0**-20


_TARGETS = (NAMED[0], NAMED[3], NAMED[2])


# Above this, a whole number and the next one would be the same double.
_MOST_EXPONENT = 40


@case_source("encode_decode")
def codes_and_values(rng: Any) -> list[Case]:
    formats = [dict(one) for one in NAMED]
    for index in range(_DRAWN):
        drawn = draw_format(rng, has_inf=bool(index % 2))
        # Half of them cut off instead of rounding to nearest, which no library's format does.
        formats.append({**drawn, "rounding": "zero"} if index % 3 else drawn)
    return [Case.split(_case(rng, fmt), "kinds") for fmt in formats]


@case_source("where_it_breaks")
def formats(rng: Any) -> list[Case]:
    drawn: list[dict[str, Any]] = []
    while len(drawn) < 8:
        fmt = draw_format(rng, has_inf=len(drawn) % 2 == 0)
        if fmt["mantissa_bits"] + 2 <= largest_exponent(fmt) <= _MOST_EXPONENT:
            drawn.append(fmt)
    return [Case(given=one) for one in ([dict(one) for one in NAMED] + drawn)]


@case_source("static_scale")
def histograms(rng: Any) -> list[Case]:
    # What is asked for: "few" is a histogram that fits easily, "tight" just fits, "wide" cannot.
    kinds = ["few", "few", "large", "tight", "tight", "wide", "wide", "few", "lumps", "lumps", "at one per cent"]
    # These fill the format to its end, and empty bins lie above.
    kinds += ["flat", "flat", "one too wide", "one too wide", "below one per cent"]
    return [Case(given=_histogram(rng, kind, dict(_TARGETS[i % 3]))) for i, kind in enumerate(kinds)]


def draw_format(rng: Any, *, has_inf: bool) -> dict[str, Any]:
    """A format that no chip has, with a bias near the middle of its exponents."""
    exponent_bits, mantissa_bits = int(rng.integers(3, 7)), int(rng.integers(1 if has_inf else 2, 9))
    bias = 2 ** (exponent_bits - 1) - 1 + int(rng.choice([-2, -1, 1, 2]))
    name = f"1+{exponent_bits}+{mantissa_bits} bits, bias {bias}"
    return dict(zip(_FIELDS, (name, exponent_bits, mantissa_bits, bias, has_inf, "nearest"), strict=True))


def largest_exponent(fmt: dict[str, Any]) -> int:
    """The exponent of the format's largest finite numbers."""
    return int(2 ** fmt["exponent_bits"] - 1 - fmt["bias"] - fmt["has_inf"])


def _case(rng: Any, fmt: dict[str, Any]) -> dict[str, Any]:
    drawn = _values(rng, fmt)
    return {"format": fmt, "codes": _codes(rng, fmt), "kinds": [k for k, _ in drawn], "values": [v for _, v in drawn]}


def _codes(rng: Any, fmt: dict[str, Any]) -> list[int]:
    m, width = fmt["mantissa_bits"], fmt["exponent_bits"] + fmt["mantissa_bits"]
    sign, all_ones = 1 << width, (1 << width) - 1
    top = all_ones >> m << m
    edges = [0, sign, 1, (1 << m) - 1, 1 << m, fmt["bias"] << m, top - 1, top, sign | top, all_ones, all_ones - 1]
    return edges + [int(code) for code in rng.integers(0, 2 * sign, size=12)]


def _values(rng: Any, fmt: dict[str, Any]) -> list[tuple[str, float]]:
    """Values with the kind of decision that each asks for."""
    m, low, high = fmt["mantissa_bits"], 1 - fmt["bias"], largest_exponent(fmt)
    last = 2 ** (m + 1) - (1 if fmt["has_inf"] else 2)

    def drawn(kind: str, part: float, *, subnormal: bool = False) -> tuple[str, float]:
        whole = int(rng.integers(0 if subnormal else 2**m, 2**m if subnormal else last))
        exponent = low if subnormal else int(rng.integers(low, high + 1))
        return kind, math.ldexp((whole + part) * float(rng.choice([-1, 1])), exponent - m)

    found = [drawn("exact", 0.0) for _ in range(3)] + [drawn("tie", 0.5) for _ in range(6)]
    found += [drawn("near", 0.5 - _HAIR), drawn("near", 0.5 + _HAIR), drawn("near", 0.25), drawn("near", 0.8)]
    found += [drawn("subnormal", part, subnormal=True) for part in (0.0, 0.0, 0.3, 0.5 + _HAIR, 0.5, 0.5)]
    found += [("flush", math.ldexp(part, low - m)) for part in (0.5, -0.5, 0.3, 0.5 + _HAIR)]
    found += [("edge", math.ldexp(last + part, high - m)) for part in (0.5 - _HAIR, 0.5, 0.5 + _HAIR, 1.0, 1.5)]
    found += [("large", math.ldexp(sign * float(rng.uniform(1, 9)), high + 2)) for sign in (1, -1)]
    return [*found, ("infinity", math.inf), ("infinity", -math.inf), ("NaN", math.nan), ("zero", 0.0), ("zero", -0.0)]


def _histogram(rng: Any, kind: str, fmt: dict[str, Any]) -> dict[str, Any]:
    """Counts by bin of log2 magnitude, placed against the format's range as `kind` says."""
    width = largest_exponent(fmt) - (1 - fmt["bias"] - fmt["mantissa_bits"])
    span = {"wide": width + int(rng.integers(3, 9)), "tight": width - 1, "flat": width, "one too wide": width + 1}.get(
        kind, int(rng.integers(5, max(6, width - 3)))
    )
    start = int(rng.integers(-60, -20)) if kind != "large" else int(rng.integers(largest_exponent(fmt) - 3, 20))
    exponents = list(range(start - 6, start + span + 4))
    middle, spread = start + span / 2, span / (2.0 if kind == "wide" else 4.5)
    heights = [math.exp(-(((k - middle) / spread) ** 2)) if start <= k < start + span else 0.0 for k in exponents]
    counts = [int(1e5 * height * float(rng.uniform(0.7, 1.3))) + (height > 0) for height in heights]
    if kind == "lumps":
        # Most values in one bin, and nearly all bins hold a few: a share of bins is not a share of values.
        counts = [40 if count else 0 for count in counts]
        counts[6 + int(rng.integers(2, span - 1))] = int(rng.integers(20_000, 60_000))
    if kind in ("flat", "one too wide"):
        counts = [int(rng.integers(300, 400)) if count else 0 for count in counts]
    if kind == "below one per cent":
        counts = [0] * len(exponents)
        counts[6], counts[8], counts[6 + span - 1] = 9_995, 40_000, 950_005
    if kind == "at one per cent":
        counts = [0] * len(exponents)
        counts[6], counts[8], counts[6 + span - 1] = 10, 40, 950
    return {"format": fmt, "exponents": exponents, "counts": counts}
