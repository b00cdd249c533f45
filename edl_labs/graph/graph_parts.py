"""The parts of the IR: tensors, loops and operators, as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from edl_labs.values import Value

KINDS = ("contraction", "reduction", "pointwise", "layout", "other")


@dataclass(frozen=True, repr=False)
class TensorFacts(Value):
    """A tensor: shape, strides (in elements), dtype, and whose memory it is (its own, unless it is a view)."""

    DERIVED = ("bytes",)

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    itemsize: int
    base: str
    """The tensor that owns the memory: the tensor itself, or the one of which it is a view."""
    role: str = "made"

    @property
    def elements(self) -> int:
        """How many there are by its shape."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the elements that exist: an expanded dimension counts once, overlapping windows their span."""
        if 0 in self.shape:
            return 0
        span = 1 + sum((size - 1) * abs(step) for size, step in zip(self.shape, self.stride, strict=True))
        return min(self.elements, span) * self.itemsize

    @property
    def is_view(self) -> bool:
        """Whether the memory is another tensor's."""
        return self.base != self.name


@dataclass(frozen=True, repr=False)
class Loop(Value):
    """What a kernel of one operator goes through: `rows` results, each from `columns` elements (1 if pointwise).

    `runs` says which dimensions these are, from the slowest in memory to the fastest, neighbours joined: "r4096 c768"
    is a sum over the last dimension, "c32 r64 c3136" one over all but the channels of NCHW.
    """

    rows: int
    columns: int = 1
    runs: str = ""

    @property
    def elements(self) -> int:
        """Of the whole loop."""
        return self.rows * self.columns


@dataclass(frozen=True, repr=False)
class Node(Value):
    """One operator that computes or copies: about one kernel in eager mode. Views are no nodes: they move nothing.

    `kind` is a contraction (products and convolutions), a reduction (a result from many elements: sums, norms, softmax,
    pooling), pointwise, a layout change (values move, and stay as they are) or other (sorting, scattering, custom
    operators). `reads` and `makes` are names of tensors. FLOPs as `roofline.count` counts them.
    """

    name: str
    operator: str
    kind: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    loop: Loop
    read_bytes: int
    written_bytes: int
    contraction_flops: int = 0
    other_flops: float = 0.0
    direction: str = "forward"
    module: str = ""

    @property
    def gives_rows(self) -> bool:
        """Whether a reduction has a result for each row alone, where a softmax has one for each element."""
        return self.kind == "reduction" and self.operator not in WHOLE_RESULTS

    @property
    def moved_bytes(self) -> int:
        """Read and written in a kernel of its own."""
        return self.read_bytes + self.written_bytes


# Reductions that give as many elements as they read: their kernels go through each row again.
WHOLE_RESULTS = frozenset(
    """
    _softmax _log_softmax _safe_softmax _softmax_backward_data _log_softmax_backward_data native_layer_norm
    native_layer_norm_backward native_group_norm native_group_norm_backward _fused_rms_norm _fused_rms_norm_backward
    native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional _batch_norm_with_update
    _batch_norm_with_update_functional cudnn_batch_norm native_batch_norm_backward batch_norm_backward normalize
    cudnn_batch_norm_backward cumsum cumprod softmax layer_norm
    """.split()  # noqa: SIM905 - one name a line would fill a page
)


def runs_of(shape: tuple[int, ...], stride: tuple[int, ...], reduced: set[int]) -> str:
    """Dimensions from the slowest in memory to the fastest, neighbours of a kind joined: "r4096 c768"."""
    order = sorted(range(len(shape)), key=lambda at: -stride[at] if stride[at] else 0)
    if any(step == 0 for step in stride):
        order = list(range(len(shape)))
    runs: list[list[Any]] = []
    for at in order:
        if shape[at] == 1:
            continue
        kind = "c" if at in reduced else "r"
        if runs and runs[-1][0] == kind:
            runs[-1][1] *= shape[at]
        else:
            runs.append([kind, shape[at]])
    return " ".join(f"{kind}{size}" for kind, size in runs)
