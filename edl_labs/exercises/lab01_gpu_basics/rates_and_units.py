"""peak_from_clock, faster_than_light and petabyte: rates, bounds and units."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong

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
_JUST_BELOW = (0.9995, 1 - 1e-6)  # a thousand times what floats lose on the way, and no more
_LINE_CODES = (8 / 10, 64 / 66, 128 / 130)  # of SATA and PCIe 2, 10GbE, and PCIe 3


@exercise("peak_from_clock")
class PeakFromClock:
    """Peak FLOP/s of a chip from its SMs, multiply-adds per clock and clock.

    `student.peak_flop_per_s(row, dtype, sm_count=, clock_mhz=)` gives FLOP/s on the faster unit, or 0.0.
    """

    def cases(self, rng: Any) -> list[Any]:
        wanted = [("Ampere (A100)", "fp64"), ("Volta", "fp16"), ("Ampere (A100)", "fp32"), ("Volta", "tf32")]
        wanted.append(("made up", "fp16"))
        names = list(_DECK_ROWS)
        wanted += [(names[int(rng.integers(len(names)))], str(rng.choice(_DTYPES))) for _ in range(8)]
        return [_chip(rng, *pair) for pair in wanted]

    def probe(self, student: Any, case: Any) -> Any:
        return student.peak_flop_per_s(
            case["row"], case["dtype"], sm_count=case["sm_count"], clock_mhz=case["clock_mhz"]
        )

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if close(got, want, rtol=1e-9):
            return
        ratio = got / want if want else float("inf")
        why = f"asked for {case['dtype']} on an SM with {case['row']}"
        raise Wrong(*_peak_mistake(case, ratio), why=why, next=_peak_next(ratio, want))


@exercise("faster_than_light")
class FasterThanLight:
    """Refuse a time that no machine can reach; otherwise say how close to the bound it came.

    `student.fraction_of_light(time_s, ...)` raises ValueError for an impossible time, else gives a fraction.
    """

    def cases(self, rng: Any) -> list[Any]:
        kinds = ["memory", "compute", "memory", "compute", "copy only", "arithmetic only", "nothing"]
        stretches = [1.0, 1.0, 1.6, 1.25, 3.0, 2.0, 1.0]
        slow = [_timed(rng, kind, stretch) for kind, stretch in zip(kinds, stretches, strict=True)]
        fast = [_timed(rng, kind, float(rng.uniform(0.2, 0.97))) for kind in ("memory", "compute")]
        fast += [_timed(rng, kind, stretch) for kind in ("memory", "compute") for stretch in _JUST_BELOW]
        never = [{**_timed(rng, "memory", 1.0), "time_s": time_s} for time_s in (0.0, -2e-6)]
        never += [{**_timed(rng, "nothing", 1.0), "time_s": time_s} for time_s in (0.0, -2e-6)]
        drawn = [_timed(rng, str(rng.choice(kinds[:2])), float(rng.uniform(0.5, 4))) for _ in range(6)]
        return slow + fast + never + drawn

    def probe(self, student: Any, case: Any) -> Any:
        work = {name: value for name, value in case.items() if name != "time_s"}
        try:
            return {"refused": False, "fraction": student.fraction_of_light(case["time_s"], **work)}
        except ValueError:
            return {"refused": True, "fraction": 0.0}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if want["refused"] and not got["refused"]:
            raise _let_through(case)
        if got["refused"] and not want["refused"]:
            raise _wrongly_refused(case)
        if not close(got["fraction"], want["fraction"], rtol=1e-6, atol=1e-12):
            raise _wrong_fraction(case, got["fraction"], want["fraction"])


@exercise("petabyte")
class Petabyte:
    """How long an amount of data takes over a link, whatever units the two are written in.

    `student.transfer_s(size, rate, efficiency=)` gives seconds, for sizes like '1 PB' and rates like '6 Gbit/s'.
    """

    def cases(self, rng: Any) -> list[Any]:
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
        cases = [{"size": size, "rate": rate, "efficiency": efficiency} for size, rate, efficiency in deck]
        cases += [{"size": size, "rate": rate, "efficiency": _line_code(rng, rate)} for size, rate in drawn]
        return [*cases, {"size": _amount(rng, "GB"), "rate": _amount(rng, "Gbit/s"), "efficiency": None}]

    def probe(self, student: Any, case: Any) -> Any:
        if case["efficiency"] is None:  # left to the function's own default
            return student.transfer_s(case["size"], case["rate"])
        return student.transfer_s(case["size"], case["rate"], efficiency=case["efficiency"])

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got, want, rtol=1e-6):
            raise _transfer_mistake(case, got / want)


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


def _let_through(case: Any) -> Wrong:
    if case["time_s"] <= 0:
        what = "a time of zero or less went through"
    elif case["time_s"] > 0.99 * max(*_bounds_s(case)):
        what = "a time just below the bound went through"
    elif case["time_s"] < case["moved_bytes"] / case["bandwidth_byte_per_s"]:
        what = "a time below the memory's bound went through"
    else:
        what = "a time below the arithmetic's bound went through"
    return Wrong(
        what,
        why="no correct measurement of that much work can be so short",
        next="raise ValueError when the time is below the larger of the two bounds",
    )


def _bounds_s(case: Any) -> tuple[float, float]:
    """How long the bytes take alone, and the arithmetic."""
    return case["moved_bytes"] / case["bandwidth_byte_per_s"], case["flop"] / case["peak_flop_per_s"]


def _wrongly_refused(case: Any) -> Wrong:
    move_s, compute_s = _bounds_s(case)
    if case["time_s"] == max(move_s, compute_s):
        what, why = "a time exactly at the bound was refused", "light itself is possible, if rare"
    elif case["time_s"] < move_s + compute_s:
        what, why = "a possible time was refused", "moving and computing can go on at the same time"
    else:
        what, why = "a slow time was refused", "it is far above both bounds"
    return Wrong(what, why=why, next="which of the two bounds must a time not be below?")


def _wrong_fraction(case: Any, fraction: Any, right: float) -> Wrong:
    move_s, compute_s = _bounds_s(case)
    if right and close(fraction, 1 / right):
        what, why = "that says how many times slower it was", "the fraction of the speed of light is at most 1"
    elif close(fraction, 100 * right):
        what, why = "that is a percentage", "a fraction is asked for"
    elif close(fraction, (move_s + compute_s) / case["time_s"]):
        what, why = "the two bounds were added", "moving and computing go on at the same time"
    elif close(fraction, move_s / case["time_s"]):
        what, why = "only the memory's bound was looked at", "here the arithmetic takes longer"
    elif close(fraction, compute_s / case["time_s"]):
        what, why = "only the arithmetic's bound was looked at", "here the memory takes longer"
    else:
        what, why = "the fraction is wrong", "it is the shortest possible time over the measured one"
    return Wrong(what, why=why, next="put both bounds beside the time and compare")


def _transfer_mistake(case: Any, ratio: float) -> Wrong:
    binary = any(unit.split()[1][1:2] == "i" for unit in (case["size"], case["rate"]))
    efficiency = 1.0 if case["efficiency"] is None else case["efficiency"]
    known = [
        (8.0, "bit" in case["size"], "a size in bits was read as bytes", "which letter follows the prefix?"),
        (1 / 8, "bit" in case["rate"], "a rate in bits was read as bytes", "which letter follows the prefix?"),
        (1 / 8 * efficiency, "bit" in case["rate"], "a rate in bits was read as bytes", "bit or B?"),
        (8.0, "bit" not in case["rate"], "a rate in bytes was read as bits", "which letter follows the prefix?"),
        (efficiency, True, "the line code was left out", "only part of the line's bits carry data"),
        (efficiency**2, True, "the line code was applied the wrong way", "does it make a link faster?"),
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
