"""What grading a submission took: one value, from its kernels to the report on the class."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from edl_labs.values import Value


@dataclass(frozen=True)
class Usage:
    """What one submission took; two are added where it took several runs."""

    own_s: float = 0.0
    """Seconds spent in the notebook's own cells and probes."""
    wall_s: float = 0.0
    """Seconds from reading the plan to the last mark, new kernels and waiting included."""
    cpu_s: float = 0.0
    """CPU seconds of all its kernels."""
    own_cpu_s: float = 0.0
    """The same without the kernels' start."""
    peak_bytes: int = 0
    """The most memory that one of its kernels had."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            own_s=self.own_s + other.own_s,
            wall_s=self.wall_s + other.wall_s,
            cpu_s=self.cpu_s + other.cpu_s,
            own_cpu_s=self.own_cpu_s + other.own_cpu_s,
            peak_bytes=max(self.peak_bytes, other.peak_bytes),
        )


class UsingValue(Value):
    """A value whose `usage` lies among its other keys in JSON, where stored results have always had it."""

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON data, with its kind and schema number."""
        tree = super().to_json()
        usage = tree.pop("usage")
        return tree | usage

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Self:
        """The value that `to_json` wrote, also before it wrote a kind; UsageError for anything else."""
        try:
            flat = dict(json.loads(tree) if isinstance(tree, str) else tree)
        except (ValueError, TypeError):
            return super().from_json(tree)  # which says what is wrong with it
        return super().from_json({"kind": cls.kind_name(), "usage": flat, **flat})
