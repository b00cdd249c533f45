"""The cases of autotuner: streams of problems that come often, seldom, or once, and what kernels take on them."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_CHIPS = ("H100-SXM", "A100-80GB")
_KINDS = (("fp16", "NHWC"), ("fp16", "NCHW"), ("fp32", "NHWC"), ("fp32", "NCHW"))
_CANDIDATES = 4  # as many as there are kinds, so that each kind can have a best of its own


@case_source("autotuner")
def streams(rng: Any) -> list[Case]:
    length = int(rng.integers(32, 64))
    kinds = [_problem(rng, length, kind, best) for kind, best in zip(_KINDS, _bests(rng), strict=True)]
    # The default is the fastest for two in three of what comes seldom: who runs another one there takes longer.
    rare = [
        _problem(rng, 64 + at, _KINDS[0], int(rng.integers(0, _CANDIDATES)) if at % 3 == 0 else 0) for at in range(30)
    ]
    one = _problem(rng, length, _KINDS[2], int(rng.integers(1, _CANDIDATES)))
    few = [one, *rare[:12]]
    # Where the default is the fastest, a timing that takes in the calls before it chooses another one.
    default = _problem(rng, length, _KINDS[0], 0)
    cases = [
        _case(rng, kinds, [int(rng.integers(50, 70)) for _ in kinds]),
        _case(rng, [*kinds[:2], *rare[:20]], [70, 60, *(int(rng.integers(1, 4)) for _ in range(20))]),
        _case(rng, [one], [int(rng.integers(80, 120))]),
        _case(rng, rare, [int(rng.integers(1, 4)) for _ in rare]),
        _case(rng, few, [90, *(3 for _ in few[1:])]),
        _case(rng, [default], [int(rng.integers(40, 60))]),
    ]
    return [Case(given=one) for one in cases]


def _bests(rng: Any) -> list[int]:
    """The fastest candidate of each kind: all different, and not the default for the first."""
    order = [int(one) for one in rng.permutation(_CANDIDATES)]
    return order if order[0] else [*order[1:], order[0]]


def _problem(rng: Any, length: int, kind: tuple[str, str], best: int) -> dict[str, Any]:
    """Times of a few hundred microseconds: less apart than the 400 that loading a kernel takes."""
    times = [int(rng.integers(420, 560)) for _ in range(_CANDIDATES)]
    times[best] = int(rng.integers(240, 300))
    dtype, layout = kind
    return {"shape": [32, 64, length, length], "dtype": dtype, "layout": layout, "times_s": [1e-6 * t for t in times]}


def _case(rng: Any, problems: list[dict[str, Any]], often: list[int]) -> dict[str, Any]:
    calls = [number for number, times in enumerate(often) for _ in range(times)]
    order = [calls[at] for at in rng.permutation(len(calls))]
    return {"chip": str(rng.choice(_CHIPS)), "problems": problems, "calls": order}
