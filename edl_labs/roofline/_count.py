"""`count`: FLOPs and bytes of a real torch run, for each operator and each module, forward and backward."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.presenters import Plottable
from edl_labs.roofline.work import Work
from edl_labs.units import byte_count, si
from edl_labs.values import Value

# operator, module, direction, dtype
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, repr=False)
class OperatorCount(Value):
    """What one operator did in one module, in one direction and dtype, over all its calls."""

    operator: str
    module: str
    direction: str
    dtype: str
    calls: int
    contraction_flops: int
    other_flops: float
    moved_bytes: int
    hides_products: bool = False

    @property
    def work(self) -> Work:
        """The row as Work; EdlError where its dtype has no ceiling (integers, complex numbers)."""
        unknown = (self.operator if self.operator != "*" else f"operators in {self.module or 'the model'}",)
        amounts = self.contraction_flops, self.other_flops, self.moved_bytes
        return Work(*amounts, self.dtype, self.operator, unknown if self.hides_products else ())


@dataclass(frozen=True, repr=False)
class Count(Value, Plottable):
    """FLOPs and bytes of one run. `moved_bytes` is the sum over operations as they ran (each reads and writes memory).

    `fused_bytes` is the least for the whole run: parameters, buffers and inputs once, results and gradients once.
    `uncounted` names operations whose other FLOPs are not known, with the number of calls; their bytes are counted.
    """

    DERIVED = ("contraction_flops", "other_flops", "moved_bytes", "dtype")
    ROWS = "rows"

    rows: tuple[OperatorCount, ...]
    fused_bytes: int
    modules: tuple[str, ...]
    uncounted: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def contraction_flops(self) -> int:
        """FLOPs of matrix products and convolutions."""
        return sum(row.contraction_flops for row in self.rows)

    @property
    def other_flops(self) -> float:
        """All other FLOPs."""
        return sum(row.other_flops for row in self.rows)

    @property
    def moved_bytes(self) -> int:
        """Bytes of all operations, one after the other, none fused."""
        return sum(row.moved_bytes for row in self.rows)

    @property
    def unknown_products(self) -> tuple[str, ...]:
        """Operators that may multiply matrices and are not counted: your own, and kernels without a formula."""
        return tuple(dict.fromkeys(row.operator for row in self.rows if row.hides_products))

    @property
    def dtype(self) -> str:
        """The dtype of most contractions, or of most bytes where there are none."""
        flops: Counter[str] = Counter()
        moved: Counter[str] = Counter()
        for row in self.rows:
            flops[row.dtype] += row.contraction_flops
            moved[row.dtype] += row.moved_bytes
        most = flops if flops.total() else moved
        return most.most_common(1)[0][0] if most else "fp32"

    def work(self, *, fused: bool = False) -> Work:
        """The whole run as Work in its main dtype; with `fused`, with the least bytes."""
        moved = self.fused_bytes if fused else self.moved_bytes
        return Work(self.contraction_flops, self.other_flops, moved, self.dtype, "step", self.unknown_products)

    def direction(self, direction: str) -> Count:
        """The 'forward' or the 'backward' rows alone."""
        if direction not in ("forward", "backward"):
            raise UsageError(
                f"there is no direction {direction!r}",
                why="a step has two directions",
                next="use 'forward' or 'backward'",
            )
        kept = tuple(row for row in self.rows if row.direction == direction)
        return dataclasses.replace(self, rows=kept)

    def by_operator(self) -> tuple[OperatorCount, ...]:
        """One row for each operator and dtype, the most bytes first."""
        return _merged(self.rows, lambda row: (row.operator, "", "both", row.dtype))

    def by_module(self, *, depth: int | None = None) -> dict[str, OperatorCount]:
        """What each module did with all that is inside it, by name; '' is the whole model.

        `depth` limits how deep names go: 1 gives the model and its children.
        """
        totals: dict[str, list[OperatorCount]] = defaultdict(list)
        for row in self.rows:
            parts = row.module.split(".") if row.module else []
            for level in range(len(parts) + 1):
                if depth is None or level <= depth:
                    totals[".".join(parts[:level])].append(row)
        order = ["", *self.modules]
        return {
            name: _sum(totals[name], ("*", name, "both", "mixed"))
            for name in sorted(totals, key=lambda name: order.index(name) if name in order else len(order))
        }

    def __str__(self) -> str:
        text = (
            f"{si(self.contraction_flops, 'FLOP')} in contractions, {si(self.other_flops, 'FLOP')} in other operators, "
            f"{byte_count(self.moved_bytes)} moved ({byte_count(self.fused_bytes)} if everything were fused)"
        )
        if self.unknown_products:
            text += f"; contractions unknown for {', '.join(self.unknown_products)}"
        others = [name for name in self.uncounted if name not in self.unknown_products]
        return f"{text}; other FLOPs unknown for {', '.join(others)}" if others else text


@checked_arguments(model="Pass an nn.Module or a function, then its inputs: count(model, x).")
def count(model: Callable[..., Any], *inputs: Any, backward: bool = True, **keywords: Any) -> Count:
    """The FLOPs and bytes of one run of `model(*inputs, **keywords)`, and of its backward pass.

    The model runs as it is, where it is, in its own mode: dropout, batch norm and the device's choice of kernels count
    as they run. Its buffers, gradients (the inputs' too) and random numbers are afterwards as before; parameters that
    a function holds without being a Module are out of sight, and their gradients stay. Without `backward` (or where
    nothing requires a gradient) only the forward pass runs, without gradients. Contractions equal torch's
    FlopCounterMode where that has a formula, except for the backward pass of grouped convolutions: it is twice the
    forward pass, and torch counts as if there were no groups. On fake tensors (FakeTensorMode), or where the model is
    on meta, nothing is computed and the count is the same; meta counts as a CPU. Only the scratch memory of oneDNN's
    recurrent layers is then unknown. EdlError where the model cannot run on these inputs.

    >>> import torch
    >>> counted = count(torch.nn.Linear(1024, 4096, bias=False), torch.randn(512, 1024), backward=False)
    >>> counted.contraction_flops == 2 * 512 * 1024 * 4096
    True
    """
    import torch

    from edl_labs.roofline.operators.recorded_run import record

    model = getattr(model, "_orig_mod", model)
    modules = {}
    if isinstance(model, torch.nn.Module):
        modules = {module: name for name, module in model.named_modules()}
    calls, fused_bytes = record(model, inputs, keywords, modules=modules, backward=backward)
    rows, uncounted = _rows(calls)
    return Count(rows, fused_bytes, tuple(name for name in modules.values() if name), uncounted)


def _rows(calls: list[Any]) -> tuple[tuple[OperatorCount, ...], dict[str, int]]:
    from edl_labs.roofline.operators.counted_call import counted

    uncounted: Counter[str] = Counter()
    hiding: set[_Key] = set()
    found: dict[_Key, list[float]] = {}
    for call in calls:
        name, dtype, contraction, other, moved, hides = counted(call)
        if other is None:
            uncounted[name] += 1
        key = (name, call.module, "backward" if call.is_backward else "forward", dtype)
        if hides:
            hiding.add(key)
        sums = found.setdefault(key, [0, 0, 0.0, 0])
        for place, value in enumerate((1, contraction, other or 0.0, moved)):
            sums[place] += value
    rows = tuple(
        OperatorCount(*key, int(c), int(f), o, int(b), hides_products=key in hiding)
        for key, (c, f, o, b) in found.items()
    )
    return rows, dict(uncounted)


def _merged(rows: tuple[OperatorCount, ...], key: Callable[[OperatorCount], _Key]) -> tuple[OperatorCount, ...]:
    groups: dict[_Key, list[OperatorCount]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return tuple(sorted((_sum(g, k) for k, g in groups.items()), key=lambda row: -row.moved_bytes))


def _sum(rows: list[OperatorCount], key: _Key) -> OperatorCount:
    return OperatorCount(
        *key,
        calls=sum(row.calls for row in rows),
        contraction_flops=sum(row.contraction_flops for row in rows),
        other_flops=sum(row.other_flops for row in rows),
        moved_bytes=sum(row.moved_bytes for row in rows),
        hides_products=any(row.hides_products for row in rows),
    )
