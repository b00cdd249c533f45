"""Checks the benchmark harness on this machine with payloads whose true time is known.

python benchmarks/selfcheck.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from edl_labs.bench._compare import compare
from edl_labs.bench._measure import checked_budget, measure
from edl_labs.clock import Clock, HostClock
from edl_labs.units import percent, seconds
from edl_labs.values import Value

_SPINS_S = (20e-6, 100e-6, 1e-3)  # from few calls of Python up to one timer tick
_STEPS = (20, 21, 22, 24, 26)  # known ratios of 1 to 1.3, where verdicts are hard
_UNIT = 40  # readings: a few microseconds on common clocks, far more than a loop's own cost


@dataclass(frozen=True)
class Check:
    """One payload of known truth: what it should be, what was found, and whether the interval held the truth."""

    name: str
    truth: float
    found: float
    low: float
    high: float

    @property
    def bias(self) -> float:
        """Found over truth, less one."""
        return self.found / self.truth - 1

    @property
    def covered(self) -> bool:
        """Whether the truth lies in the interval."""
        return self.low <= self.truth <= self.high


@dataclass(frozen=True, repr=False)
class SelfCheck(Value):
    """What the harness finds on payloads of known truth: spins of a set time, and k units against m units of work."""

    KIND = "selfcheck"

    spins: tuple[Check, ...]
    ratios: tuple[Check, ...]

    @property
    def worst_bias(self) -> float:
        """The largest bias on the spins, without its sign."""
        return max(abs(check.bias) for check in self.spins)

    @property
    def coverage(self) -> float:
        """The share of known ratios that lie in their intervals; 95 % is promised."""
        return sum(check.covered for check in self.ratios) / len(self.ratios)

    def __repr__(self) -> str:
        lines = [f"{c.name}: {seconds(c.found, digits=4)}, bias {_signed(c.bias)}" for c in self.spins]
        typical = median(abs(c.bias) for c in self.ratios)
        lines.append(
            f"{len(self.ratios)} known ratios: typical error {percent(typical, digits=2)}, "
            f"{sum(c.covered for c in self.ratios)} are inside their 95 % intervals"
        )
        return "\n".join(lines)


def selfcheck(*, budget_s: float = 4.0, clock: Clock | None = None, seed: int | None = None) -> SelfCheck:
    """Bias on spins of a known time, and coverage on known ratios (additivity of k units of work), on this machine."""
    budget_s = checked_budget(budget_s)
    clock = HostClock() if clock is None else clock
    each = budget_s / (len(_SPINS_S) + 2 * len(_STEPS))
    spins = tuple(_spin(duration, clock, each) for duration in _SPINS_S)
    ratios = tuple(_ratio(k, clock, each, seed) for k in _STEPS * 2)
    return SelfCheck(spins, ratios)


def spinning(duration_s: float, clock: Clock) -> Callable[[], None]:
    """A function that keeps the processor for `duration_s`, by the clock itself."""

    def spin() -> None:
        now = clock.now_s
        end = now() + duration_s
        while now() < end:
            pass

    return spin


def units_of_work(count: int, clock: Clock) -> Callable[[], None]:
    """A function that does `count` units of work; a unit is 40 readings, which take time on every clock."""

    def work() -> None:
        now = clock.now_s
        for _ in range(count):
            for _ in range(_UNIT):
                now()

    return work


def _spin(duration_s: float, clock: Clock, budget_s: float) -> Check:
    m = measure(spinning(duration_s, clock), budget_s=budget_s, clock=clock, detect=False)
    # The spin ends between two readings: on average one and a half of them after its time, the first included.
    truth = duration_s + 1.5 * clock.read_cost_s
    return Check(f"spin of {seconds(duration_s)}", truth, m.median_s, m.low_s, m.high_s)


def _ratio(count: int, clock: Clock, budget_s: float, seed: int | None) -> Check:
    sides = {"base": units_of_work(_STEPS[0], clock), "more": units_of_work(count, clock)}
    c = compare(sides, budget_s=budget_s, clock=clock, equal=False, precision=0.0, seed=seed)
    return Check(f"{count} units over {_STEPS[0]}", count / _STEPS[0], c.ratio, c.low, c.high)


def _signed(fraction: float) -> str:
    return f"{'+' if fraction >= 0 else '−'}{percent(abs(fraction), digits=2)}"


if __name__ == "__main__":
    print(selfcheck())
