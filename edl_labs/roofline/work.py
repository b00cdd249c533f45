"""`Work`: the FLOPs and bytes of an operation, from its shapes alone; one function for each kind of operation.

Conventions. A multiply-add is two FLOPs. Contractions (matrix products, convolutions) are counted apart from all other
arithmetic, because processors do them at another rate. A transcendental function (exp, erf, sqrt, division) is one
FLOP. Bytes are those of unique operands: each input is read once and each output written once, as if caches were
perfect. `fused=True` is the least that any implementation must move; `fused=False` writes and reads every
intermediate result.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from edl_labs.errors import UsageError
from edl_labs.hardware import dtype_name
from edl_labs.roofline.costs import NORMS, SOFTMAX
from edl_labs.roofline.sizes import check_amount, check_sizes, pair
from edl_labs.units import byte_count, si
from edl_labs.values import Value

if TYPE_CHECKING:  # it needs numpy, which a browser does not have
    from edl_labs.virtual.tiles.launch_record import LaunchRecord

ITEM_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
INDEX_BYTES = 8  # torch's indices are int64


@dataclass(frozen=True, repr=False)
class Work(Value):
    """What must be done: FLOPs of contractions, other FLOPs, bytes to and from memory, in one dtype.

    `unknown_products` names operators that may multiply matrices without being counted: `bound` refuses such work.

    >>> Work(2e9, 0, 1e8, "fp16").intensity_flop_per_byte
    20.0
    """

    contraction_flops: float
    other_flops: float
    moved_bytes: float
    dtype: str = "fp32"
    name: str = ""
    unknown_products: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("contraction_flops", "other_flops", "moved_bytes"):
            value = getattr(self, field)
            check_amount(field, value)
            # Numbers of numpy would not survive JSON.
            object.__setattr__(self, field, int(value) if isinstance(value, Integral) else float(value))
        object.__setattr__(self, "dtype", dtype_name(self.dtype))

    @property
    def total_flops(self) -> float:
        """FLOPs of contractions and all others together."""
        return self.contraction_flops + self.other_flops

    @property
    def intensity_flop_per_byte(self) -> float:
        """Arithmetic intensity: all FLOPs over all bytes; inf where nothing moves, 0 where nothing is computed."""
        if self.moved_bytes == 0:
            return math.inf if self.total_flops else 0.0
        return self.total_flops / self.moved_bytes

    def __add__(self, other: Work) -> Work:
        """Both, one after the other: everything adds up. UsageError where the dtypes differ."""
        if not isinstance(other, Work):
            return NotImplemented
        if self.dtype != other.dtype:
            raise UsageError(
                f"{self.dtype} work and {other.dtype} work cannot be added",
                why="each dtype has its own ceiling",
                next="compute the bound of each part, and add the times",
            )
        return dataclasses.replace(
            self,
            contraction_flops=self.contraction_flops + other.contraction_flops,
            other_flops=self.other_flops + other.other_flops,
            moved_bytes=self.moved_bytes + other.moved_bytes,
            name=" + ".join(dict.fromkeys(filter(None, (self.name, other.name)))),
            unknown_products=tuple(dict.fromkeys((*self.unknown_products, *other.unknown_products))),
        )

    def __mul__(self, times: float) -> Work:
        """The same work several times over."""
        check_amount("times", times)
        return dataclasses.replace(
            self,
            contraction_flops=self.contraction_flops * times,
            other_flops=self.other_flops * times,
            moved_bytes=self.moved_bytes * times,
        )

    __rmul__ = __mul__

    def named(self, name: str) -> Work:
        """The same work with a different name."""
        return dataclasses.replace(self, name=name)

    def __str__(self) -> str:
        flops, moved = si(self.total_flops, "FLOP"), byte_count(self.moved_bytes)
        return f"{self.name or 'work'} ({self.dtype}): {flops}, {moved}, {self.intensity_flop_per_byte:.4g} FLOP/B"


def total(works: Iterable[Work], *, name: str = "") -> Work:
    """The sum of works of one dtype; UsageError for an empty sum, or where dtypes differ."""
    listed = list(works)
    if not listed:
        raise UsageError(
            "cannot add up an empty list of work", why="an empty sum has no dtype", next="pass at least one Work"
        )
    summed = listed[0]
    for work in listed[1:]:
        summed = summed + work
    return summed.named(name) if name else summed


def count_tiles(*launches: LaunchRecord) -> Work:
    """The work of launches of `virtual.tiles`: what their programs computed and moved, each access counted.

    `place` and `bound` take it, and so tell how far from the speed of light a kernel is.
    """
    if not launches:
        raise UsageError(
            "there is no launch to count",
            why="counting needs the record of a kernel launch",
            next="call count_tiles(kernel[grid](...))",
        )
    works = [Work(one.dot_flops, one.other_flops, one.moved_bytes, one.dtype, one.kernel) for one in launches]
    return total(works)


def gemm(
    m: int, n: int, k: int, *, dtype: object = "fp32", batch: int = 1, accumulate: bool = False, fused: bool = True
) -> Work:
    """C = A·B for A of m × k and B of k × n, `batch` times; with `accumulate`, C = C + A·B.

    Not fused, the sum is an operation of its own, which writes A·B and reads it again: deck [004]'s "analysed two
    operations as one".

    >>> gemm(512, 512, 512, accumulate=True).intensity_flop_per_byte
    64.0
    >>> round(gemm(512, 512, 512, accumulate=True, fused=False).intensity_flop_per_byte, 1)
    42.7
    """
    check_sizes(m=m, n=n, k=k, batch=batch)
    item = item_bytes(dtype)
    outputs = batch * m * n
    elements = batch * (m * k + k * n) + outputs
    if accumulate:
        elements += outputs if fused else 3 * outputs
    # Starting each sum from C costs nothing; a sum of its own is one addition per element.
    added = outputs if accumulate and not fused else 0
    return Work(2 * outputs * k, added, item * elements, dtype_name(dtype), "gemm")


def matvec(m: int, n: int, *, dtype: object = "fp32") -> Work:
    """y = A·x for A of m × n.

    Two FLOPs for each element of A: the first addition of each row adds to zero (deck [004] writes M(2N-1)).
    """
    return gemm(m, 1, n, dtype=dtype).named("matvec")


def linear(
    batch: int,
    in_features: int,
    out_features: int,
    *,
    dtype: object = "fp32",
    bias: bool = False,
    fused: bool = True,
) -> Work:
    """`batch` rows through a fully connected layer; not fused, the bias is added in a pass of its own."""
    check_sizes(batch=batch, in_features=in_features, out_features=out_features)
    product = gemm(batch, out_features, in_features, dtype=dtype).named("linear")
    return product + _bias(batch * out_features, out_features, dtype=dtype, fused=fused) if bias else product


def conv2d(
    batch: int,
    in_channels: int,
    out_channels: int,
    *,
    height: int,
    width: int,
    kernel: int | tuple[int, int] = 3,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    dtype: object = "fp32",
    bias: bool = False,
    fused: bool = True,
) -> Work:
    """A convolution of `batch` images of in_channels × height × width, as direct arithmetic (no Winograd)."""
    check_sizes(batch=batch, in_channels=in_channels, out_channels=out_channels, groups=groups)
    if in_channels % groups or out_channels % groups:
        raise UsageError(
            f"cannot split {in_channels} input and {out_channels} output channels into {groups} groups",
            why="each group must have the same number of channels",
            next="choose a number of groups that divides both",
        )
    size = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    out_height, out_width = window_outputs(height, width, **size)
    taps = math.prod(pair("kernel", kernel))
    per_output = in_channels // groups * taps
    outputs = batch * out_channels * out_height * out_width
    inputs, weights = batch * in_channels * height * width, out_channels * per_output
    moved = item_bytes(dtype) * (inputs + weights + outputs)
    work = Work(2 * outputs * per_output, 0, moved, dtype_name(dtype), "conv2d")
    return work + _bias(outputs, out_channels, dtype=dtype, fused=fused) if bias else work


def pooling(
    batch: int,
    channels: int,
    *,
    height: int,
    width: int,
    kernel: int | tuple[int, int] = 3,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    kind: str = "max",
    dtype: object = "fp32",
) -> Work:
    """Pooling of `batch` images: 'max' compares k² values in k²-1 steps, 'mean' adds them up and divides once."""
    check_sizes(batch=batch, channels=channels)
    taps = math.prod(pair("kernel", kernel))
    per_output = {"max": taps - 1, "mean": taps}.get(kind)
    if per_output is None:
        raise UsageError(f"there is no pooling {kind!r}", why="there are two kinds", next="use 'max' or 'mean'")
    out_height, out_width = window_outputs(height, width, kernel=kernel, stride=stride, padding=padding)
    outputs, inputs = batch * channels * out_height * out_width, batch * channels * height * width
    return Work(0, per_output * outputs, item_bytes(dtype) * (inputs + outputs), dtype_name(dtype), f"{kind} pooling")


def elementwise(
    elements: int,
    *,
    inputs: int = 1,
    operations: int = 1,
    dtype: object = "fp32",
    fused: bool = True,
) -> Work:
    """A chain of `operations` on tensors of `elements` each, from `inputs` tensors to one.

    Fused, the inputs are read and the result written once; not fused, every operation reads its operands and writes its
    result. Each operation is one FLOP per element.

    >>> elementwise(1000, dtype="fp16").intensity_flop_per_byte
    0.25
    """
    check_sizes(elements=elements, inputs=inputs, operations=operations)
    passes = inputs + 1 if fused else inputs + 1 + 2 * (operations - 1)
    return Work(0, operations * elements, item_bytes(dtype) * passes * elements, dtype_name(dtype), "elementwise")


def reduction(elements: int, *, outputs: int = 1, dtype: object = "fp32") -> Work:
    """`elements` values reduced to `outputs`, one FLOP (an addition, a comparison) per value."""
    check_sizes(elements=elements, outputs=outputs)
    if outputs > elements:
        raise UsageError(
            f"{elements} values cannot be reduced to {outputs}",
            why="a reduction cannot return more values than it reads",
            next="swap the two numbers",
        )
    return Work(0, elements, item_bytes(dtype) * (elements + outputs), dtype_name(dtype), "reduction")


def norm(
    rows: int,
    features: int,
    *,
    kind: str = "layer",
    affine: bool = True,
    dtype: object = "fp32",
    fused: bool = True,
) -> Work:
    """Normalisation of `rows` of `features` ('layer', 'rms', or 'batch' with its statistics over the rows).

    Fused: read once, written once, plus the parameters. Not fused: one pass for each statistic (mean and variance;
    'rms' has one), and one that normalises.
    """
    check_sizes(rows=rows, features=features)
    if kind not in NORMS:
        raise UsageError(
            f"there is no norm {kind!r}", why="there are three kinds", next="use 'layer', 'rms' or 'batch'"
        )
    cost, statistics, vectors = NORMS[kind]
    elements = rows * features
    flops = cost - (0 if affine else vectors)
    passes = 2 if fused else 2 + statistics
    parameters = vectors * features if affine else 0
    moved = item_bytes(dtype) * (passes * elements + parameters)
    return Work(0, flops * elements, moved, dtype_name(dtype), f"{kind} norm")


def softmax(rows: int, features: int, *, dtype: object = "fp32", fused: bool = True) -> Work:
    """Softmax over `features`, in `rows`: maximum, difference, exp, sum, quotient.

    Not fused: the maximum reads, the exponential reads and writes, the sum reads, the quotient reads and writes.
    """
    check_sizes(rows=rows, features=features)
    elements = rows * features
    passes = 2 if fused else 6
    return Work(0, SOFTMAX * elements, item_bytes(dtype) * passes * elements, dtype_name(dtype), "softmax")


def attention(
    batch: int,
    heads: int,
    queries: int,
    *,
    head_dim: int,
    keys: int | None = None,
    key_heads: int | None = None,
    dtype: object = "fp32",
    fused: bool = True,
) -> Work:
    """Scaled dot-product attention: softmax(Q·Kᵀ/√d)·V for each head, without a mask.

    Fused (flash attention) moves Q, K, V and the output; not fused writes and reads the scores and the probabilities,
    which grow with queries × keys. `key_heads` below `heads` shares keys and values (grouped queries).
    """
    keys = queries if keys is None else keys
    key_heads = heads if key_heads is None else key_heads
    check_sizes(batch=batch, heads=heads, queries=queries, head_dim=head_dim, keys=keys, key_heads=key_heads)
    scores = batch * heads * queries * keys
    elements = 2 * batch * head_dim * (heads * queries + key_heads * keys) + (0 if fused else 4 * scores)
    moved = item_bytes(dtype) * elements
    # One FLOP per score for the scale, beside the softmax.
    return Work(4 * scores * head_dim, (SOFTMAX + 1) * scores, moved, dtype_name(dtype), "attention")


def embedding(tokens: int, features: int, *, vocabulary: int | None = None, dtype: object = "fp32") -> Work:
    """`tokens` rows of `features` looked up: indices and rows read, rows written, nothing computed.

    With `vocabulary`, no more rows than the table has are read.
    """
    check_sizes(tokens=tokens, features=features)
    rows = tokens
    if vocabulary is not None:
        check_sizes(vocabulary=vocabulary)
        rows = min(tokens, vocabulary)
    moved = INDEX_BYTES * tokens + item_bytes(dtype) * features * (rows + tokens)
    return Work(0, 0, moved, dtype_name(dtype), "embedding")


def item_bytes(dtype: object) -> int:
    """Bytes of one value; EdlError for an unknown dtype.

    >>> item_bytes("bf16"), item_bytes("torch.float64")
    (2, 8)
    """
    return ITEM_BYTES[dtype_name(dtype)]


def window_outputs(
    height: int,
    width: int,
    *,
    kernel: int | tuple[int, int],
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
) -> tuple[int, int]:
    """Height and width of the output of a sliding window; UsageError if the window does not fit."""
    check_sizes(height=height, width=width)
    found = []
    sizes = zip((height, width), pair("kernel", kernel), pair("stride", stride), strict=True)
    for (size, taps, step), pad, spread in zip(
        sizes, pair("padding", padding, least=0), pair("dilation", dilation), strict=True
    ):
        found.append((size + 2 * pad - spread * (taps - 1) - 1) // step + 1)
    if min(found) < 1:
        raise UsageError(
            f"a window of {kernel} does not fit into an image of {height} × {width}",
            why="the output would be empty",
            next="pass a larger image, more padding or a smaller kernel",
        )
    return found[0], found[1]


def _bias(outputs: int, channels: int, *, dtype: object, fused: bool) -> Work:
    moved = item_bytes(dtype) * (channels + (0 if fused else 2 * outputs))
    return Work(0, outputs, moved, dtype_name(dtype))


__all__ = [
    "ITEM_BYTES",
    "Work",
    "attention",
    "conv2d",
    "elementwise",
    "embedding",
    "gemm",
    "item_bytes",
    "linear",
    "matvec",
    "norm",
    "pooling",
    "reduction",
    "softmax",
    "total",
    "window_outputs",
]
