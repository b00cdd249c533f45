"""Alignment: which sizes let tensor cores run at full speed: one rule, from which the decks' tables follow.

Rows must start at multiples of 16 bytes for tensor cores to be used well at all, and of 128 bytes for the full speed of
an A100 (decks [000], [002]; NVIDIA's matrix multiplication guide). Sizes are those that lie contiguously in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.numerics._float_format import FORMATS, float_format
from edl_labs.units import percent
from edl_labs.values import Value

RULES_BYTES = (16, 128)  # decks [000] and [002], as said above


@dataclass(frozen=True, repr=False)
class AlignedSize(Value):
    """One size against the rule: how far it is from aligned, and what padding to the next multiple costs."""

    name: str
    size: int
    multiple: int

    @property
    def aligned(self) -> bool:
        """Whether the size is a multiple."""
        return self.size % self.multiple == 0

    @property
    def padded(self) -> int:
        """The next aligned size, which is the size itself where it is aligned."""
        return -(-self.size // self.multiple) * self.multiple

    @property
    def extra(self) -> float:
        """What padding adds to the work, as a fraction."""
        return self.padded / self.size - 1


@dataclass(frozen=True, repr=False)
class Alignment(Value):
    """Sizes of one operation under one rule; `aligned` when all of them are."""

    DERIVED = ("aligned",)
    ROWS = "sizes"

    dtype: str
    rule_bytes: int
    sizes: tuple[AlignedSize, ...]

    @property
    def aligned(self) -> bool:
        """Whether every size is a multiple."""
        return all(size.aligned for size in self.sizes)

    @property
    def extra(self) -> float:
        """What padding all sizes adds to the work, as a fraction."""
        work = 1.0
        for size in self.sizes:
            work *= 1 + size.extra
        return work - 1

    def __repr__(self) -> str:
        multiple = alignment_multiple(self.dtype, rule_bytes=self.rule_bytes)
        rule = f"{self.dtype}, {self.rule_bytes} B rule: multiples of {multiple}"
        bad = ", ".join(f"{s.name} {s.size} → {s.padded} (+{percent(s.extra)})" for s in self.sizes if not s.aligned)
        return f"{rule}; {bad or 'all aligned'}"


@checked_arguments()
def alignment_multiple(dtype: Any, *, rule_bytes: int = 16) -> int:
    """The multiple that a contiguous size should be of: the rule's bytes over the bytes of an element.

    TF32 is stored as fp32, so that it counts four bytes. 16 bytes is the old rule, 128 the one for an A100.

    >>> [alignment_multiple(dtype, rule_bytes=128) for dtype in ("int8", "fp16", "tf32", "fp64")]
    [128, 64, 32, 16]
    """
    if rule_bytes not in RULES_BYTES:
        raise UsageError(
            f"there is no alignment rule of {rule_bytes!r} bytes",
            why="tensor cores need sizes in multiples of 16 bytes; since the A100, multiples of 128 bytes are best",
            next="use rule_bytes=16 or rule_bytes=128",
        )
    return max(1, rule_bytes // element_bytes(dtype))


@checked_arguments()
def alignment(sizes: Mapping[str, int], dtype: Any, *, rule_bytes: int = 16) -> Alignment:
    """How each named size stands to the rule.

    >>> alignment({"outputs": 4097}, "fp16")
    fp16, 16 B rule: multiples of 8; outputs 4097 → 4104 (+0.171 %)
    """
    multiple = alignment_multiple(dtype, rule_bytes=rule_bytes)
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise UsageError(
                f"{name} is {size!r}",
                why="a size must be a whole number of at least 1",
                next='pass sizes such as {"outputs": 4096}',
            )
    return Alignment(_short(dtype), rule_bytes, tuple(AlignedSize(str(n), int(s), multiple) for n, s in sizes.items()))


def element_bytes(dtype: Any) -> int:
    """The bytes that one element takes in memory: 4 for TF32, which only tensor cores shorten."""
    short = _short(dtype)
    if short in ("int8", "uint8", "fp8"):
        return 1
    return 4 if short == "tf32" else max(1, FORMATS[short].bits // 8)


def _short(dtype: Any) -> str:
    text = str(dtype).removeprefix("torch.").lower()
    return text if text in ("int8", "uint8", "fp8") else float_format(dtype).name
