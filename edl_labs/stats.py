"""Robust estimates with intervals that keep their promise. Samples in, frozen values out; no clock, no printing.

Two intervals, for two designs:

* `sign_flip_interval`: paired rounds whose order was drawn by a fair coin. Swapping two identical sides flips the
  sign of a round's difference and nothing else, so under the true ratio the signs are fair coins whatever the noise
  does: it may drift, burst, have heavy tails or remember. Wilcoxon's signed-rank interval is then exact (Lehmann,
  Nonparametrics, 1975, ch. 3).
* `median_interval`: one series. Order statistics, interpolated (Hettmansperger and Sheather 1986), with fewer effective
  samples where neighbours resemble each other.

`planned_half_width` reads how large deviations are, which the coin does not change, and not their signs, so that a rule
which stops on it leaves the coverage where it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from edl_labs.errors import UsageError

_MAX_PAIRED = 400  # its 80,000 Walsh averages sort in well under a tenth of a second
_EXACT_UP_TO = 80  # beyond, the normal approximation agrees to a rank at 95 %
_ROUNDING = 1e-6  # relative; a spread below it is rounding
_HODGES_LEHMANN_COST = math.sqrt(math.pi / 3)


@dataclass(frozen=True)
class Estimate:
    """A centre with an interval at `level`, from `n` samples worth `effective_n` independent ones."""

    center: float
    low: float
    high: float
    level: float
    n: int
    effective_n: float

    @property
    def half_width(self) -> float:
        """Half the interval's length; inf where the upper end is infinite."""
        return (self.high - self.low) / 2

    def map(self, function: Any) -> Estimate:
        """The estimate on a different scale, given by an increasing function such as math.exp."""
        return Estimate(
            function(self.center), function(self.low), function(self.high), self.level, self.n, self.effective_n
        )


def sign_flip_interval(differences: Sequence[float], *, level: float = 0.95) -> Estimate:
    """The Hodges-Lehmann centre of paired differences and its exact signed-rank interval.

    Fewer than six rounds cannot reach 95 % by signs alone; there Student's t stands in, wide as it must be.

    >>> sign_flip_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).center
    4.0
    """
    return sign_flip_intervals(differences, levels=(level,))[0]


def sign_flip_intervals(differences: Sequence[float], *, levels: Sequence[float]) -> list[Estimate]:
    """`sign_flip_interval` at several levels, at the cost of one."""
    x = _samples(differences)
    for level in levels:
        _check_level(level)
    walsh = _walsh(_batched(x)) if len(x) else x
    return [_signed_rank(x, walsh, level) for level in levels]


def _signed_rank(x: np.ndarray, walsh: np.ndarray, level: float) -> Estimate:
    n = len(x)
    if n == 0:
        return Estimate(math.nan, -math.inf, math.inf, level, 0, 0.0)
    rank = _signed_rank_index(min(n, _MAX_PAIRED), level)
    if rank < 1:
        return _student(x, level)
    return Estimate(float(np.median(walsh)), float(walsh[rank - 1]), float(walsh[-rank]), level, n, float(n))


def median_interval(samples: Sequence[float], *, level: float = 0.95) -> Estimate:
    """The median of a series and an interval for the median it comes from, memory between neighbours allowed for.

    >>> e = median_interval([3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 8.0, 7.0, 9.0])
    >>> e.low < e.center == 5.0 < e.high
    True
    """
    x = _samples(samples)
    _check_level(level)
    n = len(x)
    if n == 0:
        return Estimate(math.nan, -math.inf, math.inf, level, 0, 0.0)
    effective = _effective(n, inefficiency(x > np.median(x)), level)
    ordered = np.sort(x)
    low, high = _interpolated(ordered, level, effective)
    return Estimate(float(np.median(x)), low, high, level, n, effective)


def _effective(n: int, worth: float, level: float) -> float:
    if worth <= 1.0:
        return float(n)
    # How far samples resemble each other was itself estimated from few; Student's t pays for that.
    return n / worth * (_z(level) / student_quantile((1 + level) / 2, max(2, round(n / worth) - 1))) ** 2


def inefficiency(series: Sequence[float] | np.ndarray) -> float:
    """How many samples are worth one independent one (1 for no memory): 1 + 2 x the sum of autocorrelations.

    Lags count while their autocorrelation, averaged over pairs of lags, stays above what chance gives (Geyer 1992).
    """
    x = np.asarray(series, dtype=float)
    n = len(x)
    x = x - x.mean() if n else x
    power = float(x @ x)
    if n < 8 or power <= 0:
        return 1.0
    worth = 1.0
    for _ in range(3):
        # The mean is taken from the same samples, which makes each autocorrelation look smaller by about worth / n.
        worth = min(1.0 + 2.0 * _summed(x, power, lost=worth / n), n / 4)
    return worth


def _summed(x: np.ndarray, power: float, *, lost: float) -> float:
    n, total = len(x), 0.0
    for lag in range(1, n // 2, 2):
        seen = sum(float(x[: n - k] @ x[k:]) / power for k in (lag, lag + 1))
        if seen < 1.0 / math.sqrt(n):
            break
        total += seen + (2 - seen) * lost
    return total


def planned_half_width(differences: Sequence[float], *, level: float = 0.95) -> float:
    """The half-width to expect from `sign_flip_interval` after these rounds, from the sizes of deviations alone.

    Swapping two identical sides turns a difference over about the true one and leaves the size of its deviation as it
    was. The median of the sizes knows the coins only through the centre, so that stopping once this is small enough
    keeps the interval's coverage.

    >>> round(planned_half_width([-0.01, 0.01] * 50), 4)
    0.003
    """
    x = _samples(differences)
    if len(x) < 2:
        return math.inf
    return _z(level) * _HODGES_LEHMANN_COST * robust_spread(x) / math.sqrt(len(x))


def drift(samples: Sequence[float]) -> float:
    """Relative change from the first third to the last third, by medians; 0 for fewer than nine samples."""
    x = np.asarray(samples, dtype=float)
    third = len(x) // 3
    if third < 3:
        return 0.0
    first = float(np.median(x[:third]))
    return float(np.median(x[-third:])) / first - 1.0 if first else 0.0


def robust_spread(samples: Sequence[float] | np.ndarray) -> float:
    """The scaled median absolute deviation: the standard deviation of a normal sample, whatever its outliers do."""
    x = np.asarray(samples, dtype=float)
    return float(1.4826 * np.median(np.abs(x - np.median(x)))) if len(x) else math.nan


@dataclass(frozen=True)
class Shape:
    """What a distribution looks like: shares of fast and slow outliers, and two modes where there are two."""

    fast_share: float
    slow_share: float
    modes: tuple[float, ...]
    slow_mode_share: float

    @property
    def words(self) -> str:
        """The shape in words: 'steady', 'bimodal', 'slow tail', 'fast tail'."""
        if len(self.modes) == 2:
            return "bimodal"
        tails = [word for word, share in (("slow", self.slow_share), ("fast", self.fast_share)) if share > 0.05]
        return f"{' and '.join(tails)} tail" if tails else "steady"


def shape(samples: Sequence[float]) -> Shape:
    """The shape of a sample: one mode or two well apart, and the shares beyond five robust deviations."""
    x = np.sort(np.asarray(samples, dtype=float))
    if len(x) < 8 or x[-1] - x[0] <= _ROUNDING * abs(x[-1]):
        return Shape(0.0, 0.0, (float(np.median(x)),) if len(x) else (), 0.0)
    cut = _two_modes(x)
    if cut:
        low, high = x[:cut], x[cut:]
        return Shape(0.0, 0.0, (float(np.median(low)), float(np.median(high))), len(high) / len(x))
    middle, reach = float(np.median(x)), 5 * robust_spread(x)
    return Shape(float(np.mean(x < middle - reach)), float(np.mean(x > middle + reach)), (middle,), 0.0)


def _two_modes(x: np.ndarray) -> int:
    """Where sorted `x` falls into two clusters, each a tenth or more, 6 of their deviations apart; else 0."""
    n = len(x)
    least = max(3, n // 10)
    sizes = np.arange(1, n)
    sums = np.cumsum(x)[:-1]
    total = float(x.sum())
    between = (sums / sizes - (total - sums) / (n - sizes)) ** 2 * sizes * (n - sizes)
    between[: least - 1] = between[n - least :] = -1.0
    cut = int(np.argmax(between)) + 1
    low, high = x[:cut], x[cut:]
    within = max(robust_spread(low), robust_spread(high), abs(float(np.median(x))) * 1e-3)
    return cut if float(np.median(high) - np.median(low)) > 6 * within else 0


def _walsh(x: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(len(x))
    return np.sort((x[i] + x[j]) / 2)


def _batched(x: np.ndarray) -> np.ndarray:
    """At most 400 values: means over runs of neighbours, which a sign flip of each round leaves symmetric."""
    if len(x) <= _MAX_PAIRED:
        return x
    return np.array([float(np.mean(part)) for part in np.array_split(x, _MAX_PAIRED)])


@lru_cache(maxsize=4096)
def _signed_rank_index(n: int, level: float) -> int:
    """How many of the sorted Walsh averages to leave out on each side, plus one; 0 where `level` cannot be reached."""
    tail = (1 - level) / 2
    if n > _EXACT_UP_TO:
        mean, deviation = n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return math.floor(mean + 0.5 - _z(level) * deviation)
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1.0
    for rank in range(1, n + 1):
        counts[rank:] = counts[rank:] + counts[:-rank]
    return int(np.searchsorted(np.cumsum(counts / 2.0**n), tail, side="right"))


def _interpolated(ordered: np.ndarray, level: float, effective: float) -> tuple[float, float]:
    """Ends of the interval of the median: order statistics as far out as `effective` samples would put them."""
    n = len(ordered)
    size = max(2, round(effective))
    if 0.5 ** (size - 1) > 1 - level:
        # Neighbours resemble each other so much that no inner part is safe: all that was seen, or nothing is known.
        return (float(ordered[0]), float(ordered[-1])) if 0.5 ** (n - 1) <= 1 - level else (-math.inf, math.inf)
    below = np.cumsum([math.comb(size, k) for k in range(size // 2 + 1)]) / 2.0**size if size < 1000 else None
    if below is None:
        depth = size / 2 - _z(level) * math.sqrt(size) / 2
    else:
        k = int(np.searchsorted(below, (1 - level) / 2, side="right"))
        wide, narrow = 1 - 2 * below[k - 1], 1 - 2 * below[min(k, size // 2)]
        share = (wide - level) / (wide - narrow) if wide > narrow else 0.0
        depth = k + (size - k) * share / (k + (size - 2 * k) * share)
    place = min(max(depth * n / size, 1.0), n / 2 + 0.5) - 1
    low = float(np.interp(place, np.arange(n), ordered))
    return low, float(np.interp(n - 1 - place, np.arange(n), ordered))


def _student(x: np.ndarray, level: float) -> Estimate:
    n = len(x)
    center = float(np.mean(x))
    if n < 2:
        return Estimate(center, -math.inf, math.inf, level, n, float(n))
    reach = student_quantile((1 + level) / 2, n - 1) * float(np.std(x, ddof=1)) / math.sqrt(n)
    return Estimate(center, center - reach, center + reach, level, n, float(n))


@lru_cache(maxsize=4096)
def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t, by bisection of its distribution function.

    >>> round(student_quantile(0.975, 1), 3), round(student_quantile(0.975, 4), 3)
    (12.706, 2.776)
    """
    low, high = 0.0, 1e6
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_below(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


def _student_below(t: float, degrees: int) -> float:
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = total = (cosine if odd else 1.0) if degrees > 1 else 0.0
    for k in range(3 if odd else 2, degrees, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    share = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + share / 2


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _samples(values: Sequence[float]) -> np.ndarray:
    x = np.asarray(values, dtype=float)
    if x.ndim != 1 or not np.all(np.isfinite(x)):
        raise UsageError(
            "the samples are not one row of finite numbers",
            why="they do not form a flat list, or one of them is NaN or infinite",
            next="pass a flat list of finite numbers",
        )
    return x


def _check_level(level: float) -> None:
    if not 0.5 <= level < 1:
        raise UsageError(
            f"the level is {level}",
            why="the level of an interval must be at least 0.5 and less than 1",
            next="use, for example, 0.95",
        )
