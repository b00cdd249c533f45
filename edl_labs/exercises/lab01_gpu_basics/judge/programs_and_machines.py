"""The cases of finish_times, honest_timer and transfer_overlap: asynchronous programs, machines to time, transfers."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.virtual import VirtualMachine

_ROLLS = ("launch", "launch", "launch", "copy", "blocking copy", "host", "sync")
_CHIPS = ("T4", "V100", "A100", "H100", "H200")
_MEGABYTES = ((2, 4), (5, 12), (20, 40), (70, 140), (200, 300))  # the text promises 2 MB to 300 MB


@case_source("finish_times")
def programs(rng: Any) -> list[Case]:
    launch_s = _us(rng, 3, 12)
    fixed = [
        _program(rng, "launch " * int(rng.integers(4, 9)), 0.2, launch_s),
        _program(rng, "launch " * int(rng.integers(3, 6)) + "sync", 8.0, launch_s),
        _program(rng, "launch host sync launch sync", 0.5, launch_s),
        _program(rng, "launch host,30 sync sync launch host", 3.0, launch_s),
        _program(rng, "copy launch blocking_copy launch sync host copy", 6.0, launch_s),
    ]
    drawn = [_random_program(rng, int(rng.integers(6, 13)), launch_s) for _ in range(7)]
    return [Case(given={"program": program, "launch_s": launch_s}) for program in fixed + drawn]


def _program(rng: Any, words: str, factor: float, launch_s: float) -> list[list[Any]]:
    """Operations named in `words`, with durations around `factor` launches; `host,30` lasts about 30 launches."""
    operations = []
    for word in words.split():
        name, _, own = word.partition(",")
        scale = (float(own) if own else factor) * launch_s
        duration_s = 0.0 if name == "sync" else round(scale * float(rng.uniform(0.6, 1.4)), 9)
        operations.append([name.replace("_", " "), duration_s])
    return operations


def _random_program(rng: Any, length: int, launch_s: float) -> list[list[Any]]:
    words = [str(rng.choice(_ROLLS)).replace(" ", "_") for _ in range(length)]
    factor = float(rng.choice([0.3, 1.5, 4.0]))
    return _program(rng, " ".join(words), factor, launch_s)


def _us(rng: Any, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 1) * 1e-6


@case_source("honest_timer")
def machines_to_time(rng: Any) -> list[Case]:
    short, long = float(rng.uniform(5e-6, 8e-6)), float(rng.uniform(3.5e-3, 5e-3))
    fixed = [
        _timed_on(rng, kernel_s=float(rng.uniform(3e-5, 6e-5)), launch_s=float(rng.uniform(3e-6, 6e-6))),
        _timed_on(rng, kernel_s=short, launch_s=float(rng.uniform(9e-6, 14e-6))),
        _timed_on(rng, kernel_s=short, launch_s=float(rng.uniform(2e-6, 4e-6)), resolution_s=1e-4),
        _timed_on(rng, kernel_s=long, resolution_s=1e-9),
        _timed_on(rng, kernel_s=long, resolution_s=1e-4),
        _slow_to_load(rng),
    ]
    cases = fixed + [_timed_on(rng, kernel_s=5e-6 * 1000 ** float(rng.random())) for _ in range(3)]
    # Halfway between two whole microseconds, where a number that was rounded to one is off by 7 %.
    cases.append(_timed_on(rng, kernel_s=(6.5 + float(rng.integers(2))) * 1e-6, launch_s=3e-6))
    return [Case(given=one) for one in cases]


def _slow_to_load(rng: Any) -> Any:
    """A kernel of a large library: whoever lets its loading into a run never gets it small beside a second of calls."""
    case = _timed_on(rng, kernel_s=float(rng.uniform(2e-5, 2e-4)), resolution_s=1e-6)
    case["parameters"]["module_load_s"] = round(float(rng.uniform(0.1, 0.2)), 3)
    return case


def _timed_on(rng: Any, *, kernel_s: float, launch_s: float | None = None, resolution_s: float | None = None) -> Any:
    steps, costs = (1e-9, 1e-7, 1e-6, 2e-5, 1e-4), (6e-8, 3e-7, 2e-6)
    return {
        "chip": str(rng.choice(_CHIPS)),
        "kernel_s": round(kernel_s, 9),
        "parameters": {
            "launch_overhead_s": round(launch_s or float(rng.uniform(3e-6, 12e-6)), 9),
            "sync_overhead_s": round(float(rng.uniform(4e-6, 30e-6)), 9),
            "clock_resolution_s": resolution_s or float(rng.choice(steps)),
            "clock_read_cost_s": float(rng.choice(costs)),
        },
    }


@case_source("transfer_overlap")
def transfers(rng: Any) -> list[Case]:
    balances = [float(balance) for balance in rng.permutation([0.3, 0.8, 1.0, 1.3, 2.2])]
    return [
        Case(given=_transfer(rng, megabytes=float(rng.uniform(*span)), balance=balance))
        for span, balance in zip(_MEGABYTES, balances, strict=True)
    ]


def _transfer(rng: Any, *, megabytes: float, balance: float) -> dict[str, Any]:
    chip = str(rng.choice(["T4", "V100", "A100", "H100", "H200"]))
    link = VirtualMachine.of(chip).link_byte_per_s
    return {
        "chip": chip,
        "nbytes": int(1e6 * megabytes) // 16 * 16,
        "kernel_floor_s": round(float(rng.uniform(2e-6, 6e-6)), 9),
        "kernel_s_per_byte": balance / link,
        "parameters": {
            "launch_overhead_s": round(float(rng.uniform(3e-6, 7e-6)), 9),
            "copy_overhead_s": round(float(rng.uniform(5e-6, 10e-6)), 9),
        },
    }
