"""What a compiler leaves of a step's kernels: pointwise work and sums over rows join into one pass over memory.

One rule stands for the compiler: an operation joins the last group that made one of its inputs when both run over
tensors of one size. What a group makes for itself is never written; what only the backward pass wants of a forward
group is made again there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from edl_labs.predict.step_kernels import StepKernel

_FUSIBLE = frozenset(("pointwise", "norm", "softmax", "reduce", "copy"))
_TWO_PASSES = ("batch_norm", "group_norm", "instance_norm")


@dataclass
class _Group:
    kernels: list[StepKernel]
    size: float
    writes: dict[int, float] = field(default_factory=dict)


def fused(kernels: Sequence[StepKernel]) -> list[StepKernel]:
    """The kernels after fusion, in an order that keeps every input before its use."""
    groups: list[_Group] = []
    maker: dict[int, int] = {}
    readers: dict[int, list[int]] = defaultdict(list)
    for kernel in kernels:
        at = _home(kernel, groups, maker)
        if at is None:
            at = len(groups)
            groups.append(_Group([], _size(kernel)))
        groups[at].kernels.append(kernel)
        for version, size in kernel.writes:
            maker[version] = at
            groups[at].writes[version] = size
        for version, _ in kernel.reads:
            readers[version].append(at)
    return [_joined(group, at, readers, groups) for at, group in enumerate(groups)]


def _home(kernel: StepKernel, groups: list[_Group], maker: dict[int, int]) -> int | None:
    """The number of the group that a kernel joins, if any."""
    made = [maker[version] for version, _ in kernel.reads if version in maker]
    if kernel.kind not in _FUSIBLE or kernel.phase == "optimizer" or not made:
        return None
    last = max(made)
    group = groups[last]
    first = group.kernels[0]
    if first.kind not in _FUSIBLE or first.phase != kernel.phase:
        return None
    # A sum over everything ends a group; rows of one size, or their sums, go on in it.
    small, large = sorted((group.size, _size(kernel)))
    return last if large <= 4 * small else None


def _size(kernel: StepKernel) -> float:
    sizes = [size for _, size in (*kernel.reads, *kernel.writes)]
    return max(sizes, default=0.0)


def _joined(group: _Group, at: int, readers: dict[int, list[int]], groups: list[_Group]) -> StepKernel:
    first, last = group.kernels[0], group.kernels[-1]
    if len(group.kernels) == 1 and first.kind not in _FUSIBLE:
        return first
    outside: dict[int, float] = {}
    for kernel in group.kernels:
        for version, size in kernel.reads:
            if version not in group.writes:
                outside[version] = max(size, outside.get(version, 0.0))
    written = 0.0
    kept = []
    for version, size in group.writes.items():
        later = [reader for reader in readers[version] if reader != at]
        if later or not readers[version]:
            again = first.phase == "forward" and all(groups[r].kernels[0].phase == "backward" for r in later)
            if not (again and later and version != last.writes[0][0]):
                written += size
            kept.append((version, size))
    moved = sum(outside.values()) + written
    for kernel in group.kernels:
        if any(word in kernel.name for word in _TWO_PASSES) and "no_training" not in kernel.name:
            # Statistics of a whole tensor are a pass of their own.
            moved += sum(
                sorted((size for _, size in kernel.reads), reverse=True)[: 2 if "backward" in kernel.name else 1]
            )
    kinds = {kernel.kind for kernel in group.kernels}
    kind = next((kind for kind in ("norm", "softmax", "reduce") if kind in kinds), "pointwise")
    names = dict.fromkeys(kernel.name for kernel in group.kernels)
    return first._replace(
        name="fused " + " ".join(list(names)[:4]), kind=kind, moved_bytes=moved, reads=tuple(outside.items()),
        writes=tuple(kept), dtype=last.dtype,
    )  # fmt: skip
