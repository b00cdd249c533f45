"""What a compiler leaves of a step's kernels: `edl_labs.graph` says which operators become one loop over memory.

What a kernel makes for itself is never written; what only the backward pass wants of a forward kernel is made again
there, as inductor's partitioner has it. Products and attention stay kernels of a library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from edl_labs.graph.graph_parts import Node, TensorFacts
from edl_labs.graph.greedy_fusions import fusions
from edl_labs.graph.operator_graph import Graph
from edl_labs.predict.step_kernels import StepKernel, facts_of

_FUSIBLE = frozenset(("pointwise", "norm", "softmax", "reduce", "copy", "gather"))
_TWO_PASSES = ("batch_norm", "group_norm", "instance_norm")
_PHASES = ("forward", "backward", "optimizer")


@dataclass
class _Group:
    kernels: list[StepKernel]
    writes: dict[int, float] = field(default_factory=dict)


def fused(kernels: Sequence[StepKernel]) -> list[StepKernel]:
    """The kernels after fusion, in an order that keeps every input before its use; updates stay as they are."""
    passes = [kernel for kernel in kernels if kernel.phase != "optimizer"]
    parts = fusions(graph_of(passes), epilogues=False).kernels
    groups = [_Group([passes[int(name[1:])] for name in part.nodes]) for part in parts]
    groups.sort(key=lambda group: _PHASES.index(group.kernels[0].phase))
    groups += [_Group([kernel]) for kernel in kernels if kernel.phase == "optimizer"]
    readers: dict[int, list[int]] = defaultdict(list)
    for at, group in enumerate(groups):
        for kernel in group.kernels:
            group.writes.update(kernel.writes)
            for version, _ in kernel.reads:
                readers[version].append(at)
    return [_joined(group, at, readers, groups) for at, group in enumerate(groups)]


def graph_of(kernels: Sequence[StepKernel]) -> Graph:
    """Recorded kernels as an IR: each version of a tensor is a tensor, and ways to look at it are its views."""
    tensors: dict[str, TensorFacts] = {}
    nodes = []
    for at, kernel in enumerate(kernels):
        reads, makes = [], []
        for (version, _), spec in zip(kernel.reads, kernel.given, strict=False):
            base = f"t{version}"
            if base not in tensors:
                tensors[base] = facts_of(base, spec, role="input")
            name = base
            if (tensors[base].shape, tensors[base].stride) != (spec.shape, spec.stride):
                name = f"{base} {spec.shape} {spec.stride}"
                tensors[name] = facts_of(name, spec, base=base, role=tensors[base].role)
            reads.append(name)
        for (version, _), spec in zip(kernel.writes, kernel.made, strict=False):
            tensors[f"t{version}"] = facts_of(f"t{version}", spec)
            makes.append(f"t{version}")
        size = sum(size for _, size in kernel.reads), sum(size for _, size in kernel.writes)
        nodes.append(
            Node(
                f"k{at}", kernel.name, kernel.operator, tuple(reads), tuple(makes), kernel.loop,
                int(size[0]), int(size[1]), direction=kernel.phase,
            )
        )  # fmt: skip
    read = {tensors[name].base for node in nodes for name in node.reads}
    ends = tuple(name for node in nodes for name in node.makes if name not in read)
    return Graph("a step", "a recording", tuple(nodes), tensors, ends)


def remade_bytes(before: Sequence[StepKernel], after: Sequence[StepKernel]) -> float:
    """Bytes that an eager step saves for its backward pass, and that the compiled one makes again there."""
    wanted = {version for kernel in before if kernel.phase == "backward" for version, _ in kernel.reads}
    written = {version for kernel in after for version, _ in kernel.writes}
    return sum(
        size
        for kernel in before
        if kernel.phase == "forward"
        for version, size in kernel.writes
        if version in wanted and version not in written
    )


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
            if again and later and version != last.writes[0][0]:
                continue
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
    kind = next((kind for kind in ("norm", "softmax", "reduce", "gather") if kind in kinds), "pointwise")
    names = dict.fromkeys(kernel.name for kernel in group.kernels)
    return first._replace(
        name="fused " + " ".join(list(names)[:4]), kind=kind, moved_bytes=moved, reads=tuple(outside.items()),
        writes=tuple(kept), dtype=last.dtype,
    )  # fmt: skip
