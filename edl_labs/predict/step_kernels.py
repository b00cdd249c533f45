"""The kernels of a recorded step: what each operation asks of a GPU, whichever it is.

Contractions keep their sizes as a matrix product (a convolution is the implicit product of its windows), all other
operations the bytes that they must move. Which tensor a kernel reads and which it writes is kept, for fusion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from edl_labs.graph.graph_parts import Loop, TensorFacts
from edl_labs.graph.operator_kinds import kind_of, loop_of
from edl_labs.roofline.operators.counted_call import counted, moved_bytes, short_dtype, tensor_specs, unique_bytes
from edl_labs.roofline.operators.recorder import RecordedCall, TensorSpec


class Product(NamedTuple):
    """`batch` products of m × k by k × n; `way` is 'gemm', or a convolution's 'conv', 'dgrad' or 'wgrad'.

    `taps` is how many weights a window has, `groups` how many channel groups; `nhwc` says how a convolution's images
    lie, `aligned` whether every row starts at a multiple of 16 bytes; `strided` marks windows that skip places.
    """

    way: str
    batch: int
    m: int
    n: int
    k: int
    aligned: bool = True
    taps: int = 1
    groups: int = 1
    channels: int = 0
    nhwc: bool = True
    strided: bool = False


class Attention(NamedTuple):
    """Fused attention: `pairs` of queries and keys that are looked at, over all heads; `dim` of each head."""

    pairs: float
    dim: int
    heads: int
    backward: bool


class StepKernel(NamedTuple):
    """One kernel: what it is, in which dtype, what it multiplies, and the bytes that it reads and writes.

    `reads` and `writes` are (version of a tensor, bytes), `given` and `made` how these tensors lie. `calls` is how many
    launches it is; `operator` and `loop` are what a compiler's graph calls it, for fusion.
    """

    name: str
    kind: str
    module: str
    phase: str
    dtype: str
    product: Product | None
    attention: Attention | None
    flops: float
    moved_bytes: float
    reads: tuple[tuple[int, float], ...]
    writes: tuple[tuple[int, float], ...]
    calls: int = 1
    unknown: bool = False
    given: tuple[TensorSpec, ...] = ()
    made: tuple[TensorSpec, ...] = ()
    operator: str = "other"
    loop: Loop = Loop(0)


# How often a normalisation passes over its tensors: batch norm reads once for its statistics and once more to use
# them, and its backward pass likewise; a row of layer norm stays in the SM, but not the sums over rows of its gradient.
_PASSES = {
    "native_layer_norm_backward": 5 / 3,
    "native_group_norm_backward": 5 / 3,
    "native_group_norm": 3 / 2,
    "native_batch_norm_backward": 5 / 3,
    "_native_batch_norm_legit": 3 / 2,
    "native_batch_norm": 3 / 2,
    "_batch_norm_with_update": 3 / 2,
}
_NORM = ("norm",)
_SOFTMAX = ("softmax",)
_REDUCES = frozenset(
    """
    sum mean amax amin max min argmax argmin prod std var var_mean norm linalg_vector_norm all any logsumexp cumsum
    nll_loss_forward mse_loss
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_GATHERS = frozenset(
    """
    embedding index gather index_select embedding_dense_backward index_put_ scatter_ scatter_add_ index_add_
    nll_loss_backward _index_put_impl_ scatter sort topk
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_COPIES = frozenset(
    """
    clone copy_ contiguous cat stack _to_copy constant_pad_nd roll flip repeat slice_backward select_backward
    slice_scatter as_strided_ new_zeros
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_FREE = frozenset(
    """
    _record_function_enter_new _record_function_exit as_strided_ ones_like empty_like lift_fresh_copy
    _local_scalar_dense _assert_async _assert_scalar is_pinned scalar_tensor
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_POOLS = ("pool",)
_GROUPED = ("_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2")


def step_kernels(calls: Iterable[tuple[str, RecordedCall]], *, tf32: bool = False) -> list[StepKernel]:
    """The kernels of the calls of a step, in order; with `tf32`, products in fp32 may use tensor cores."""
    lowering = _Lowering(tf32)
    for phase, call in calls:
        lowering.take(phase, call)
    return lowering.kernels


class _Lowering:
    def __init__(self, tf32: bool) -> None:
        self.kernels: list[StepKernel] = []
        self._tf32 = tf32
        self._versions: dict[int, int] = {}
        self._count = 0

    def take(self, phase: str, call: RecordedCall) -> None:
        """Append the kernels of one call."""
        work = counted(call)
        name = work.name
        if name in _FREE or work.moved_bytes == 0:
            return
        self._phase, self._module = phase, call.module
        if name == "attention" or name == "attention_backward":
            self._attention(name, call)
        elif name in ("convolution", "convolution_backward", "cudnn_convolution", "_convolution"):
            self._convolution(name, call)
        elif name in (
            "mm",
            *_GROUPED,
            "addmm",
            "bmm",
            "baddbmm",
            "_addmm_activation",
            "linear",
            "mkldnn_linear",
            "addmv",
            "mv",
        ):
            self._product(name, call, work)
        else:
            self._other(name, call, work)

    def _other(self, name: str, call: RecordedCall, work: Any) -> None:
        kind = _kind(name, call)
        moved = float(work.moved_bytes) * _PASSES.get(name, 1.0)
        if name in ("_native_batch_norm_legit_no_training",):
            kind = "pointwise"
        product = None
        if work.contraction_flops > 0:
            # A product without sizes of its own here: as large squares would do it.
            side = max(1, round((work.contraction_flops / 2) ** (1 / 3)))
            product, kind = Product("gemm", 1, side, side, side), "product"
        dtype = short_dtype(call.out.dtype) if isinstance(call.out, TensorSpec) else work.dtype
        self._add(
            name, kind, dtype, call, moved, product=product, flops=work.contraction_flops, unknown=work.hides_products
        )
        if name == "_softmax" or name == "_log_softmax":
            self._merge_cast_before()
        elif name == "_to_copy":
            self._merge_cast_after()

    def _merge_cast_before(self) -> None:
        """On CUDA softmax reads 16 bits and writes 32 by itself: a cast just before it is no kernel there."""
        if len(self.kernels) < 2 or self.kernels[-2].name != "_to_copy":
            return
        cast, last = self.kernels[-2], self.kernels[-1]
        if cast.writes and last.reads and cast.writes[0][0] == last.reads[0][0]:
            moved = last.moved_bytes - last.reads[0][1] + cast.reads[0][1]
            self.kernels[-2:] = [last._replace(reads=cast.reads, given=cast.given, moved_bytes=moved)]

    def _merge_cast_after(self) -> None:
        """And the gradient of softmax goes back in 16 bits by itself."""
        if len(self.kernels) < 2 or self.kernels[-2].name not in (
            "_softmax_backward_data",
            "_log_softmax_backward_data",
        ):
            return
        before, cast = self.kernels[-2], self.kernels[-1]
        if before.writes and cast.reads and before.writes[0][0] == cast.reads[0][0]:
            moved = before.moved_bytes - before.writes[0][1] + cast.writes[0][1]
            self.kernels[-2:] = [before._replace(writes=cast.writes, made=cast.made, moved_bytes=moved)]

    def _product(self, name: str, call: RecordedCall, work: Any) -> None:
        given = [one for one in tensor_specs(call.args) if len(one.shape) >= 1]
        if name in _GROUPED:
            return self._grouped_product(name, call, work, *given[:2])
        if name in ("addmm", "baddbmm", "_addmm_activation", "addmv"):
            given = given[1:]
        left, right = given[0], given[1]
        if name in ("linear", "mkldnn_linear"):
            batch, m, k, n = 1, math.prod(left.shape[:-1]), left.shape[-1], right.shape[0]
        elif name in ("mv", "addmv"):
            batch, m, k, n = 1, left.shape[0], left.shape[1], 1
        elif len(left.shape) == 3:
            batch, (m, k), n = left.shape[0], left.shape[1:], right.shape[2]
        else:
            batch, (m, k), n = 1, left.shape, right.shape[1]
        dtype = self._dtype(left)
        aligned = all(_is_aligned(one) for one in (left, right)) and (n * left.dtype.itemsize) % 16 == 0
        product = Product("gemm", batch, m, n, k, aligned)
        self._add(name, "product", dtype, call, float(work.moved_bytes), product=product, flops=2.0 * batch * m * n * k)

    def _grouped_product(self, name: str, call: RecordedCall, work: Any, left: TensorSpec, right: TensorSpec) -> None:
        """Products of groups of equal size, which only the offsets' values would tell apart."""
        (m, k), n = left.shape[-2:], right.shape[-1]
        groups = max((one.shape[0] for one in (left, right, *tensor_specs(call.out)) if len(one.shape) == 3), default=1)
        if len(left.shape) < len(right.shape):
            m = -(-m // groups)
        elif len(left.shape) > len(right.shape):
            n = -(-n // groups)
        elif len(left.shape) == 2:
            k = -(-k // groups)
        aligned = all(_is_aligned(one) for one in (left, right))
        product = Product("gemm", groups, m, n, k, aligned)
        moved = float(work.moved_bytes)
        self._add(name, "product", self._dtype(left), call, moved, product=product, flops=float(work.contraction_flops))

    def _convolution(self, name: str, call: RecordedCall) -> None:
        is_backward = name.endswith("backward")
        if is_backward:
            gradient, source, weight = call.args[:3]
            stride, transposed, groups = call.args[4], call.args[7], call.args[9]
            wanted = call.args[10]
            result = gradient
        else:
            source, weight = call.args[:2]
            stride, transposed, groups = call.args[3], call.args[6], call.args[8]
            wanted, result = (True, False, False), call.out
        if transposed:
            source, result = result, source
        count = source.shape[0]
        outputs = weight.shape[0]
        inner, taps = weight.shape[1], math.prod(weight.shape[2:])
        places, given = math.prod(result.shape[2:]), math.prod(source.shape[2:])
        nhwc = _is_nhwc(source) or _is_nhwc(result)
        x, y, w = (float(unique_bytes(one)) for one in (source, result, weight))
        dtype = self._dtype(source)
        strided = max(stride) > 1
        common = {"taps": taps, "groups": groups, "channels": inner, "nhwc": nhwc, "strided": strided}
        per_group = outputs // groups
        flops = 2.0 * count * places * outputs * inner * taps
        forward = Product("conv", groups, count * places, per_group, inner * taps, **common)
        # Windows that skip places give values to some inputs alone: as many products as the forward pass has.
        reached = places if strided else given
        to_input = Product("dgrad", groups, count * reached, inner, per_group * taps, **common)
        to_weight = Product("wgrad", groups, per_group, inner * taps, count * places, **common)
        if not is_backward:
            way = to_input._replace(way="conv") if transposed else forward
            self._add(name, "product", dtype, call, x + y + w, product=way, flops=flops)
            if call.args[2] is not None and (inner > 1 or groups == 1):
                # cuDNN's bias is a pass of its own; depthwise kernels add it themselves.
                self._add("bias", "pointwise", short_dtype(source.dtype), call, 2 * y)
                self.kernels[-1] = self.kernels[-1]._replace(
                    reads=self.kernels[-2].writes, given=self.kernels[-2].made, operator="pointwise"
                )
            return
        if wanted[0]:
            way = forward._replace(way="dgrad") if transposed else to_input
            self._add("convolution dgrad", "product", dtype, call, x + y + w, product=way, flops=flops)
        if wanted[1]:
            self._add("convolution wgrad", "product", dtype, call, x + y + w, product=to_weight, flops=flops)
        if wanted[2]:
            self._add("bias gradient", "reduce", short_dtype(source.dtype), call, y)

    def _attention(self, name: str, call: RecordedCall) -> None:
        query, key, value = call.args[1:4] if name.endswith("backward") else call.args[:3]
        causal = call.args[-1]
        batch, heads, queries, dim = query.shape
        keys = key.shape[2]
        pairs = float(batch) * heads * queries * keys
        if causal and queries == keys:
            pairs *= (1 + 1 / max(1, queries)) / 2
        is_backward = name.endswith("backward")
        both = dim + value.shape[-1]
        flops = pairs * (2.5 if is_backward else 1.0) * 2 * both
        moved = float(moved_bytes(name, call.args, call.kwargs, call.out))
        form = Attention(pairs, dim, batch * heads, is_backward)
        self._add(name, "attention", short_dtype(query.dtype), call, moved, attention=form, flops=flops)

    def _dtype(self, spec: TensorSpec) -> str:
        return short_dtype(spec.dtype, tf32=self._tf32)

    def _add(
        self, name: str, kind: str, dtype: str, call: RecordedCall, moved: float, *, product: Product | None = None,
        attention: Attention | None = None, flops: float = 0.0, unknown: bool = False,
    ) -> None:  # fmt: skip
        out = list(tensor_specs(call.out)) if not isinstance(call.out, TensorSpec) else [call.out]
        given = [*tensor_specs(call.args), *tensor_specs(call.kwargs)]
        if not out and name.startswith("_foreach"):
            out = list(tensor_specs(call.args[0]))
        reads = tuple((self._versions.get(one.place, -one.place), float(unique_bytes(one))) for one in given)
        writes = []
        for one in out:
            self._count += 1
            self._versions[one.place] = self._count
            writes.append((self._count, float(unique_bytes(one))))
        self.kernels.append(
            StepKernel(
                name, kind, self._module, self._phase, dtype, product, attention, flops, moved, reads, tuple(writes),
                1, unknown, tuple(given), tuple(out), *_in_a_graph(name, kind, call, given, out),
            )
        )  # fmt: skip


def _in_a_graph(
    name: str, kind: str, call: RecordedCall, given: list[TensorSpec], out: list[TensorSpec]
) -> tuple[str, Loop]:
    """Kind and loop of an operator as `edl_labs.graph` has them."""
    if kind in ("attention", "optimizer"):
        return "other", Loop(0)
    functional = name.rstrip("_")
    operator = "contraction" if kind == "product" else kind_of(call.func, functional)
    operator = "pointwise" if operator == "view" else operator
    results, read = ([facts_of("", one) for one in several] for several in (out, given))
    settings = tuple(None if isinstance(one, TensorSpec) else one for one in call.args)
    return operator, loop_of(functional, operator, settings, read, results)


def facts_of(name: str, spec: TensorSpec, *, base: str = "", role: str = "made") -> TensorFacts:
    """A recorded tensor as the graph has them."""
    kind = str(spec.dtype).removeprefix("torch.")
    return TensorFacts(name, spec.shape, spec.stride, kind, spec.dtype.itemsize, base or name, role)


def _kind(name: str, call: RecordedCall) -> str:
    if name.startswith(("_foreach", "_fused_adam", "_fused_sgd", "_amp_foreach")):
        return "optimizer"
    if any(word in name for word in _NORM) and "vector_norm" not in name:
        return "norm"
    if any(word in name for word in _SOFTMAX):
        return "softmax"
    if any(word in name for word in _POOLS):
        return "pool"
    if name in _GATHERS:
        return "gather"
    if name in _REDUCES:
        return "reduce"
    if name in _COPIES:
        return "copy"
    return "pointwise"


def _is_nhwc(spec: TensorSpec) -> bool:
    return len(spec.shape) > 3 and spec.shape[1] > 1 and spec.stride[1] == 1


def _is_aligned(spec: TensorSpec) -> bool:
    steps = sorted((step for step, size in zip(spec.stride, spec.shape, strict=False) if size > 1), reverse=False)
    return all(step * spec.dtype.itemsize % 16 == 0 for step in steps[1:])
