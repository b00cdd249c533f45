"""The cases of peak_from_clock, faster_than_light and petabyte: chips, times near their bounds, sizes and links."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

# Multiply-adds per clock and SM, deck [002], figure 2. The deck leaves a rate out where the architecture has none.
_DECK_ROWS = {
    "Volta": {"cuda": {"fp64": 32, "fp32": 64, "fp16": 128, "int8": 256}, "tensor": {"fp16": 512}},
    "Turing": {
        "cuda": {"fp64": 2, "fp32": 64, "fp16": 128, "int8": 256},
        "tensor": {"fp16": 512, "int8": 1024, "int4": 2048, "int1": 8192},
    },
    "Ampere (A100)": {
        "cuda": {"fp64": 32, "fp32": 64, "fp16": 256, "int8": 256},
        "tensor": {"fp64": 64, "tf32": 512, "fp16": 1024, "int8": 2048, "int4": 4096, "int1": 16384},
    },
    # No chip: one whose plain units are the faster ones, so that the rule is needed, and not a preference.
    "made up": {"cuda": {"fp32": 96, "fp16": 192, "int8": 384}, "tensor": {"fp16": 128, "int8": 256, "int4": 512}},
    "Ampere (A100), sparse": {"cuda": {}, "tensor": {"tf32": 1024, "fp16": 2048, "int8": 4096, "int4": 8192}},
}
_DTYPES = ("fp64", "fp32", "tf32", "fp16", "int8", "int4", "int1")
_PREFIXES = ("k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi")
_BYTE_RATES = ("MB/s", "GB/s", "MiB/s", "GiB/s", "kB/s")
_BIT_RATES = ("Mbit/s", "Gbit/s", "Mibit/s", "Kibit/s")
_LINE_CODES = (8 / 10, 64 / 66, 128 / 130)  # of SATA and PCIe 2, 10GbE, and PCIe 3
_JUST_BELOW = (0.9995, 1 - 1e-6)  # a thousand times what floats lose on the way, and no more


@case_source("peak_from_clock")
def chips(rng: Any) -> list[Case]:
    wanted = [("Ampere (A100)", "fp64"), ("Volta", "fp16"), ("Ampere (A100)", "fp32"), ("Volta", "tf32")]
    wanted.append(("made up", "fp16"))
    names = list(_DECK_ROWS)
    wanted += [(names[int(rng.integers(len(names)))], str(rng.choice(_DTYPES))) for _ in range(8)]
    return [Case(given=_chip(rng, *pair)) for pair in wanted]


@case_source("faster_than_light")
def times_and_bounds(rng: Any) -> list[Case]:
    kinds = ["memory", "compute", "memory", "compute", "copy only", "arithmetic only", "nothing"]
    stretches = [1.0, 1.0, 1.6, 1.25, 3.0, 2.0, 1.0]
    slow = [_timed(rng, kind, stretch) for kind, stretch in zip(kinds, stretches, strict=True)]
    fast = [_timed(rng, kind, float(rng.uniform(0.2, 0.97))) for kind in ("memory", "compute")]
    fast += [_timed(rng, kind, stretch) for kind in ("memory", "compute") for stretch in _JUST_BELOW]
    never = [{**_timed(rng, "memory", 1.0), "time_s": time_s} for time_s in (0.0, -2e-6)]
    never += [{**_timed(rng, "nothing", 1.0), "time_s": time_s} for time_s in (0.0, -2e-6)]
    drawn = [_timed(rng, str(rng.choice(kinds[:2])), float(rng.uniform(0.5, 4))) for _ in range(6)]
    return [Case(given=one) for one in (slow + fast + never + drawn)]


@case_source("petabyte")
def sizes_and_links(rng: Any) -> list[Case]:
    deck = [
        ("1 PB", "30 GB/s", 1.0),
        ("1 PB", "6 Gbit/s", 0.8),
        ("1 PB", "6 GB/s", 1.0),
        ("1 PiB", "10 Gbit/s", 1.0),
        ("12 bit", "5 B/s", 1.0),
        ("2 TB", "8 GB/s", 0.8),
    ]
    sizes = [f"{prefix}{unit}" for unit in ("B", "bit") for prefix in _PREFIXES]
    rates = [*_BYTE_RATES, *_BIT_RATES, *_BIT_RATES]
    asked = [sizes[i] for i in rng.permutation(len(sizes))[: len(rates)]]
    drawn = [(_amount(rng, size), _amount(rng, rate)) for size, rate in zip(asked, rates, strict=True)]
    cases: list[dict[str, Any]] = [
        {"size": size, "rate": rate, "efficiency": efficiency} for size, rate, efficiency in deck
    ]
    cases += [{"size": size, "rate": rate, "efficiency": _line_code(rng, rate)} for size, rate in drawn]
    every = [*cases, {"size": _amount(rng, "GB"), "rate": _amount(rng, "Gbit/s"), "efficiency": None}]
    return [Case(given=one) for one in every]


def _chip(rng: Any, architecture: str, dtype: str) -> dict[str, Any]:
    return {
        "row": _DECK_ROWS[architecture],
        "dtype": dtype,
        "sm_count": int(rng.integers(16, 145)),
        "clock_mhz": int(rng.integers(180, 400)) * 5,
    }


def _timed(rng: Any, kind: str, stretch: float) -> dict[str, Any]:
    """Work whose longer bound is a power of two of seconds, so that `stretch` 1.0 is the bound exactly."""
    bound_s = 2.0 ** -int(rng.integers(8, 19))
    bandwidth = float(rng.integers(300, 4900)) * 1e9
    peak = float(rng.integers(5, 1000)) * 1e12
    shorter = float(rng.uniform(0.3, 0.9))
    move = {"memory": 1.0, "compute": shorter, "copy only": 1.0}.get(kind, 0.0)
    compute = {"memory": shorter, "compute": 1.0, "arithmetic only": 1.0}.get(kind, 0.0)
    return {
        "time_s": bound_s * stretch,
        "moved_bytes": bandwidth * bound_s * move,
        "flop": peak * bound_s * compute,
        "bandwidth_byte_per_s": bandwidth,
        "peak_flop_per_s": peak,
    }


def _amount(rng: Any, unit: str) -> str:
    number = float(rng.choice([1, 1.5, 2, 3, 4.5, 6.8, 12, 40, 56, 100, 250]))
    return f"{number:g} {unit}"


def _line_code(rng: Any, rate: str) -> float:
    return float(rng.choice(_LINE_CODES)) if rate.endswith("bit/s") else 1.0
