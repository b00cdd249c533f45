"""Requests and how they arrive: at random, in a night and a day, in bursts; lengths of prompts and of answers."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.virtual.errors import VirtualServerError, shown
from edl_labs.virtual.quantities import MAX_SECONDS

MAX_REQUESTS, MAX_TOKENS = 100_000, 1_000_000  # of a load and of a request: what a replay takes in seconds


@dataclass(frozen=True)
class Arrival:
    """A request: its arrival, the tokens of its prompt, and those of its answer, which are hidden from policies."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int = 1


def checked_arrivals(load: Iterable[Any]) -> tuple[Arrival, ...]:
    """Arrivals from Arrival or (seconds, prompt, output), in the order of time; VirtualServerError for others."""
    found: list[Arrival] = []
    for at, one in enumerate(load):
        if not isinstance(one, Arrival):
            try:
                one = Arrival(*one)
            except TypeError:
                raise _refused(at, one, "a request must be (arrival_s, prompt_tokens, output_tokens)") from None
        if type(one.arrival_s) not in (int, float) or not 0 <= one.arrival_s <= MAX_SECONDS:
            raise _refused(at, one.arrival_s, f"the arrival must be a number of seconds from 0 to {MAX_SECONDS:g}")
        for count in (one.prompt_tokens, one.output_tokens):
            if type(count) is not int or not 1 <= count <= MAX_TOKENS:
                raise _refused(at, count, f"the prompt and the output must each have 1 to {MAX_TOKENS:,} tokens")
        if found and one.arrival_s < found[-1].arrival_s:
            raise _refused(at, one.arrival_s, "requests must be ordered by their time of arrival")
        found.append(one)
        if at >= MAX_REQUESTS:
            raise _refused(at, at, f"a load has at most {MAX_REQUESTS:,} requests")
    return tuple(found)


def _refused(at: int, given: object, why: str) -> VirtualServerError:
    return VirtualServerError(
        f"request {at} has {shown(given)}", why=why, next="pass requests such as Arrival(0.5, 200, 30)"
    )


def poisson_times(rng: Any, *, count: int, per_s: float) -> list[float]:
    """Independent arrivals: exponential gaps with mean 1 / `per_s`."""
    return _rounded(rng.exponential(1 / per_s, size=count))


def burst_times(rng: Any, *, count: int, per_s: float, burst: int) -> list[float]:
    """The same rate in bursts of about `burst` requests, each within a tenth of the mean time between bursts."""
    gaps: list[float] = []
    while len(gaps) < count:
        size = 1 + int(rng.poisson(burst - 1))
        gaps += [float(rng.exponential(0.9 * size / per_s)), *rng.exponential(0.1 / per_s, size=size - 1)]
    return _rounded(gaps[:count])


def day_times(rng: Any, *, count: int, per_s: float, swing: float, period_s: float) -> list[float]:
    """A rate that goes up and down as a sine, by `swing` (0 to 1) of its mean: night first, then day.

    Times at the mean rate are stretched by the inverse of the rate's integral.
    """
    steps = 4096  # the inverse is interpolated: more would not move an arrival by a millisecond of a day of seconds
    even = poisson_times(rng, count=count, per_s=per_s)
    grid = [period_s * at / steps for at in range(steps + 1)]
    passed = [at - swing * period_s / (2 * math.pi) * math.sin(2 * math.pi * at / period_s) for at in grid]
    found = []
    for moment in even:
        days, rest = divmod(moment, period_s)
        right = min(max(bisect.bisect_right(passed, rest), 1), steps)
        share = (rest - passed[right - 1]) / (passed[right] - passed[right - 1])
        found.append(round(days * period_s + grid[right - 1] + share * (grid[right] - grid[right - 1]), 6))
    return found


def drawn_lengths(rng: Any, *, count: int, median: float, spread: float, most: int, least: int = 1) -> list[int]:
    """Lengths whose logarithm is normal, as those of prompts and answers nearly are, cut at both ends."""
    return [int(min(max(n, least), most)) for n in rng.lognormal(math.log(median), spread, size=count)]


def arrivals_of(times: Sequence[float], prompts: Sequence[int], outputs: Sequence[int]) -> list[Arrival]:
    """Requests from their times and lengths."""
    return [Arrival(*one) for one in zip(times, prompts, outputs, strict=True)]


def _rounded(gaps: Iterable[float]) -> list[float]:
    now, found = 0.0, []
    for gap in gaps:
        now += float(gap)
        found.append(round(now, 6))  # a microsecond: as fine as any server's log
    return found
