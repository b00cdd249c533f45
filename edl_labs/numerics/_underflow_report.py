"""`underflow_report`: what a format does to numbers at a scale, and where they lie in its range."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.numerics import arrays
from edl_labs.numerics._float_format import FloatFormat, float_format
from edl_labs.units import percent
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class Fate(Value):
    """How many numbers of one tensor end where; fractions are of the finite numbers that are not zero to begin with."""

    name: str
    count: int
    zero: int
    flushed_count: int
    subnormal_count: int
    normal_count: int
    overflowed_count: int
    nonfinite: int

    @property
    def judged(self) -> int:
        """The number of finite values that are not zero, to which the fractions refer."""
        return self.flushed_count + self.subnormal_count + self.normal_count + self.overflowed_count

    @property
    def flushed(self) -> float:
        """The fraction that becomes zero."""
        return self._share(self.flushed_count)

    @property
    def subnormal(self) -> float:
        """The fraction that survives with fewer bits."""
        return self._share(self.subnormal_count)

    @property
    def normal(self) -> float:
        """The fraction that keeps the format's full precision."""
        return self._share(self.normal_count)

    @property
    def overflowed(self) -> float:
        """The fraction that becomes inf, NaN, or would not fit."""
        return self._share(self.overflowed_count)

    def _share(self, count: int) -> float:
        return count / self.judged if self.judged else 0.0

    def __str__(self) -> str:
        shares = (f"{percent(getattr(self, what))} {what}" for what in ("flushed", "subnormal", "normal", "overflowed"))
        broken = f"; {self.nonfinite} of {self.count} were already inf or NaN" if self.nonfinite else ""
        return f"{self.name}: {', '.join(shares)}{broken}"


@dataclass(frozen=True, repr=False)
class UnderflowReport(Value):
    """What became of tensors in `fmt` after times `scale`: in all, each for itself, and as a histogram.

    `exponents[i]` is floor(log2) of the unscaled magnitudes counted in `counts[i]`.
    """

    ROWS = "tensors"

    fmt: FloatFormat
    scale: float
    total: Fate
    tensors: tuple[Fate, ...]
    exponents: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def flushed(self) -> float:
        """The fraction of all that becomes zero."""
        return self.total.flushed

    @property
    def subnormal(self) -> float:
        """The fraction of all that survives with fewer bits."""
        return self.total.subnormal

    @property
    def normal(self) -> float:
        """The fraction of all that keeps full precision."""
        return self.total.normal

    @property
    def overflowed(self) -> float:
        """The fraction of all that does not fit."""
        return self.total.overflowed

    def __repr__(self) -> str:
        head = (
            f"{self.fmt.name}, values times {self.scale:g} ({self.total.judged} of {self.total.count} values are "
            "not zero)"
        )
        worst = sorted(self.tensors, key=lambda fate: (-fate.nonfinite, -fate.flushed - fate.overflowed))[:5]
        rows = [f"  {fate}" for fate in worst if len(self.tensors) > 1]
        return "\n".join([head, str(self.total), *rows])


@checked_arguments()
def underflow_report(tensors: Any, fmt: Any, *, scale: float = 1.0) -> UnderflowReport:
    """The fractions of `tensors` (one, several, or named ones) flushed, subnormal, normal and overflowed in `fmt`.

    Every number is multiplied by `scale` first, exactly as the loss scale multiplies gradients.

    >>> report = underflow_report([1e-8, 1e-6, 1e-3, 1e5], "fp16")
    >>> report.flushed, report.subnormal, report.normal, report.overflowed
    (0.25, 0.25, 0.25, 0.25)
    """
    fmt = float_format(fmt)
    scale = float(scale)
    if not (math.isfinite(scale) and scale > 0):
        raise UsageError(
            f"the scale is {scale!r}",
            why="gradients are multiplied by the scale, so it must be positive and finite",
            next="pass a number such as 65536.0, torch's initial scale",
        )
    named = [(name, arrays.float64(values).ravel()) for name, values in named_tensors(tensors)]
    fates = tuple(_fate(name, values, fmt, float(scale)) for name, values in named)
    total = Fate(
        "all", *(sum(column) for column in zip(*(list(asdict(fate).values())[1:] for fate in fates), strict=True))
    )
    exponents, counts = log2_histogram(np.concatenate([values for _, values in named]))
    return UnderflowReport(fmt, float(scale), total, fates, exponents, counts)


def named_tensors(tensors: Any) -> list[tuple[str, Any]]:
    """`tensors` as (name, values) pairs: a mapping keeps its names, a list of tensors is numbered."""
    if isinstance(tensors, Mapping):
        pairs = [(str(name), values) for name, values in tensors.items()]
    elif _several(tensors):
        pairs = [(f"tensor {i}", values) for i, values in enumerate(tensors)]
    else:
        pairs = [("values", tensors)]
    if not pairs:
        raise UsageError(
            "no tensors were given", why="the report needs at least one tensor", next="pass a tensor, a list or a dict"
        )
    return pairs


@checked_arguments()
def log2_histogram(values: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Exponents `floor(log2(abs(x)))`, without gaps, and how many finite numbers that are not zero have each."""
    given = np.abs(arrays.float64(values).ravel())
    given = given[(given > 0) & np.isfinite(given)]
    if not given.size:
        return (), ()
    exponents = np.frexp(given)[1] - 1
    low = int(exponents.min())
    counts = np.bincount(exponents - low)
    return tuple(range(low, low + len(counts))), tuple(int(count) for count in counts)


def _several(tensors: Any) -> bool:
    if arrays.is_tensor(tensors) or isinstance(tensors, np.ndarray) or not isinstance(tensors, Iterable):
        return False
    return any(np.ndim(item) or arrays.is_tensor(item) for item in tensors)


def _fate(name: str, values: np.ndarray, fmt: FloatFormat, scale: float) -> Fate:
    with np.errstate(over="ignore"):
        scaled = values * scale
    became = fmt.classify(scaled)
    # A finite number that the scale lifts past fp64 has overflowed; one that was inf before has not.
    lifted = np.isinf(scaled) & np.isfinite(values)
    became[lifted] = arrays.CLASSES.index("overflowed")
    became[(scaled == 0) & (values != 0)] = arrays.CLASSES.index("flushed")
    counts = np.bincount(became, minlength=len(arrays.CLASSES))
    return Fate(name, int(values.size), *(int(count) for count in counts))
