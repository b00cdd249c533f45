# %% [markdown]
# # Write the kernel
#
# A fused softmax reads each value once and writes it once. Five lines of PyTorch that compute the same result move each
# value eight times. On a GPU they take about four times as long, since memory limits both versions. The fused version
# is one *kernel*, and you can write it yourself, in the language Triton. In this lab your source runs on any laptop,
# and every byte that it moves is counted. On a GPU, Triton compiles the same source.
#
# After this lab you can
#
# * write Triton kernels for vectors, rows, matrix products and attention, with ragged edges;
# * count the bytes that a kernel must move, and find out which additional bytes it moves;
# * say why a fused kernel is faster, and when it is not;
# * in the practice, handle rows that are longer than a block, skip the tiles of causal attention, and fuse a gelu.
#
# **About 163 minutes (estimated)**, in two sittings: the first ends with section 3. The practice sections carry no
# points. They take another 207 minutes (estimated) and can be done in any order.
#
# | exercise | section | minutes |
# |---|---|---|
# | `scale_shift_relu` | 2 | 28 |
# | `row_softmax` | 3 | 26 |
# | `tiled_product` | 4 | 37 |
# | `attention` | 5 | 42 |
# | `where_on_the_roofline` | 6 | 30 |
#
# | practice | minutes |
# |---|---|
# | `long_rows` | 33 |
# | `causal` | 39 |
# | `attention_backward` | 42 |
# | `gelu_product` | 35 |
# | `column_sums` | 22 |
# | `tile_order` | 16 |
# | `which_sdpa` | 20 |
#
# *Write your prediction down* before you run the next cell. Lecture slides are quoted by deck: [001] course
# introduction, [002] software perspective, [004] deep learning, hopefully faster. `hint("row_softmax")` gives the hints
# of an exercise, one at a time.
#
# A failing check shows the first case that is wrong. `case("row_softmax")` returns the arguments of that case, so
# `row_softmax(*case("row_softmax"))` runs your kernel on them.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.requires_solution import requires_solution
    from edl_labs.ui.predictions import predict, reveal_prediction
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
elements = 10_000

# %% given
import torch

from edl_labs.plots import style
from edl_labs.units import byte_count, seconds
from edl_labs.virtual.tiles import TileError, jit, launches_of, tl


def cdiv(a, b):
    """a / b, rounded up."""
    return -(-a // b)


def next_power_of_2(n):
    """The smallest power of two that is at least n."""
    return 1 << (n - 1).bit_length()


# %%
Progress("lab11_tiles")

# %% [markdown]
# ## 1. A program works on a block
#
# In CUDA you write what one *thread* does. In Triton you write what one *program* does, and a program
# works on a whole *block* of values. The compiler spreads a block over threads. Here is a complete kernel:


# %% given
@jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, 2 * x, mask=inside)


def double(x):
    """2 · x, with one launch."""
    y = torch.empty_like(x)
    n = x.numel()
    double_kernel[(cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y


# %% [markdown]
# | in the kernel | what it means |
# |---|---|
# | `tl.program_id(0)` | the number of this program along the first axis of the grid |
# | `tl.arange(0, BLOCK)` | the block 0, 1, …, BLOCK − 1; its length is a power of two |
# | `x_ptr + offsets` | a block of addresses; `x_ptr` is the address of the first element |
# | `tl.load(addresses, mask=…, other=…)` | a block of values; lanes outside the mask load nothing |
# | `tl.store(addresses, values, mask=…)` | writes the lanes inside the mask |
# | `BLOCK: tl.constexpr` | a number known to the compiler, as shapes of blocks must be |
# | `tl.maximum(x, y)`, `tl.where(mask, x, y)` | lane by lane, the larger value; x where the mask is true, y elsewhere |
# | `tl.max(x, axis=0)`, `tl.sum(x, axis=0)` | one value from all lanes along an axis |
# | `tl.zeros((ROWS, COLUMNS), tl.float32)`, `for start in range(0, n, BLOCK):` | a block of zeros; a loop |
# | `(rows < m) & (columns < n)` | two masks combined: each needs parentheses |
#
# A lane that loads nothing gets the value `other`. Without `other` its value is *undefined*; in `double_kernel`, the
# mask of the store keeps such values out of memory.
#
# `double` is the *host code*. It allocates the output and launches a *grid* of programs: `kernel[grid](arguments)`.
# When your exercises are checked, the host code receives tensors with a shape but without values. So the host code can
# only allocate and launch, and the kernel must do the computation. The check reads the text of the cell, so keep a
# kernel and its host function in the same cell.
#
# **Predict:** `x` has 1,000 fp32 elements. How many programs run? How many lanes of the last one are masked? How many
# bytes does the launch read and write in total?

# %%
predict("programs", "The launch runs", unit="programs")
predict("masked", "In the last program, the number of masked lanes is", unit="lanes")
predict("moved", "It reads and writes, in total,", unit="B")

# %%
with reveal_prediction("programs", "masked", "moved") as truth:
    vector = torch.linspace(-1, 1, 1000)
    (ran,) = launches_of(double, vector)
    print(ran)
    masked = 256 * ran.programs - vector.numel()
    truth(programs=ran.programs, masked=masked, moved=ran.moved_bytes)

# %% [markdown]
# Without the mask, the last program would access memory past the end of `x`. On a GPU this happens silently and may
# change another tensor. In this lab it is an error:


# %%
@jit
def unmasked_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets))


try:
    unmasked_kernel[(4,)](vector, torch.empty(1000), 1000, BLOCK=256)
except TileError as error:
    print(error)

# %% [markdown]
# ## 2. Three steps in one kernel
#
# PyTorch computes `torch.relu(a * x + b)` with three kernels. **Predict:** one kernel can do all three steps. How many
# times as many bytes do the three kernels move?

# %%
predict("three", "Compared with one kernel, three kernels move", unit="times")

# %%
with reveal_prediction("three") as truth:
    unfused = 3 * (4 + 4) * elements  # each reads a tensor and writes one
    fused = (4 + 4) * elements
    print(f"{byte_count(unfused)} and {byte_count(fused)}")
    truth(unfused / fused)

# %% [markdown]
# Deck [002] calls this *fusion*. Write `scale_shift_relu(x, a, b)` → relu(a · x + b), with one launch. `x` is an fp32
# vector of any length (at least 1); `a` and `b` are numbers, which you can pass to a launch.
#
# The check tests that every value is right, that `x` is read once and the output is written once, and that a program
# has at most 4,096 elements, so that a long vector keeps all multiprocessors busy.


# %% solve="scale_shift_relu"
@jit
def scale_shift_relu_kernel(x_ptr, y_ptr, n, a, b, BLOCK: tl.constexpr):
    """One block of relu(a * x + b)."""
    ### BEGIN SOLUTION
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0), mask=inside)
    ### END SOLUTION


def scale_shift_relu(x, a, b):
    """A new vector, relu(a * x + b)."""
    ### BEGIN SOLUTION
    y = torch.empty_like(x)
    n = x.numel()
    grid = (cdiv(n, 1024),)
    scale_shift_relu_kernel[grid](x, y, n, a, b, BLOCK=1024)
    return y
    ### END SOLUTION


# %% check="scale_shift_relu"
check("scale_shift_relu")

# %%
with requires_solution("scale_shift_relu"):
    long_vector = torch.linspace(-1, 1, elements)
    for one in launches_of(scale_shift_relu, long_vector, 2.0, 0.5):
        print(one)

# %% [markdown]
# ## 3. A row in a block
#
# Softmax needs a row's maximum and the sum of its exponentials before it can write the first value. A program that
# keeps the whole row in a block reads the row only once. `tl.max(x, axis=0)` and `tl.sum(x, axis=0)` reduce a block to
# one number, and `x - tl.max(x, axis=0)` uses that number for each lane.
#
# A row of 1,000 columns needs a block of 1,024 lanes: 24 of them are masked, but take part in each reduction.
# **Predict:** all values of a row are −20. The kernel loads them with `other=0.0`, subtracts the maximum, and sums the
# exponentials of all 1,024 lanes. What do the 1,000 results sum to?

# %%
predict("row_sum", "The results sum to", unit="1")

# %%
with reveal_prediction("row_sum") as truth:
    padded = torch.cat([torch.full((1000,), -20.0), torch.zeros(24)]).double()
    weights = torch.softmax(padded, dim=0)
    print(f"the row's maximum becomes {padded.max():g}")
    truth(weights[:1000].sum().item())

# %% [markdown]
# The value of a masked lane must not change the result: use 0 for a sum and −∞ for a maximum.
#
# Write `row_softmax(x)` → the softmax of each row. `x` is fp16 with the shape (rows, columns); the output is fp16 as
# well.
#
# * There may be gaps between rows: row `r` begins at `x_ptr + r * x.stride(0)`. The output is a new tensor without
#   gaps.
# * `x.to(tl.float32)` converts a block. Compute in fp32: `tl.exp` does not accept fp16, and sums in fp16 are too
#   inaccurate. A store converts to the type of its tensor.
# * `next_power_of_2(columns)` is a suitable length for the block.
#
# The check tests that the values are right to within one rounding to fp16 (relative 2⁻¹¹), that each element is read
# once and written once, and that there is one program for each row.


# %% solve="row_softmax"
@jit
def row_softmax_kernel(x_ptr, y_ptr, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    """The softmax of one row."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=-float("inf"))
    x = x.to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * y_stride + at, y, mask=inside)
    ### END SOLUTION


def row_softmax(x):
    """A new matrix with the softmax of each row of x."""
    ### BEGIN SOLUTION
    rows, columns = x.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    block = next_power_of_2(columns)
    row_softmax_kernel[(rows,)](x, y, columns, x.stride(0), y.stride(0), BLOCK=block)
    return y
    ### END SOLUTION


# %% check="row_softmax"
check("row_softmax")

# %% [markdown]
# ## 4. A product in tiles
#
# For C = A·B, where A is M × K and B is K × N, each program computes a *tile* of C with BM rows and BN columns. It
# walks along K: it loads a BM × BK piece of A and a BK × BN piece of B, multiplies them with `tl.dot`, and adds the
# product to an accumulator in fp32. A program reads BM rows of A, and every other program with the same rows of C reads
# them again.
#
# **Predict:** M = N = K = 4096 in fp16, with tiles of 128 × 128. How many bytes of A and B do all programs read in
# total? And how many with tiles of 64 × 64?

# %%
predict("large_tiles", "With tiles of 128 × 128 they read", unit="GB")
predict("small_tiles", "With tiles of 64 × 64 they read", unit="GB")


# %%
def read_bytes(m, n, k, bm, bn):
    """Bytes of A and B in fp16 that all programs read."""
    return 2 * (m * k * cdiv(n, bn) + k * n * cdiv(m, bm))


with reveal_prediction("large_tiles", "small_tiles") as truth:
    sizes = (4096, 4096, 4096)
    large, small = read_bytes(*sizes, 128, 128), read_bytes(*sizes, 64, 64)
    print(f"A and B alone are {byte_count(2 * 2 * 4096**2)}")
    truth(large_tiles=large, small_tiles=small)

# %% [markdown]
# In a larger tile, each loaded element is used more often. Deck [004] calls this *reuse*. Many of these reads find
# their data in the L2 cache, which has more bandwidth than memory, but not unlimited bandwidth. Move the slider below
# to step through the programs:

# %%
from edl_labs.ui.tile_widget import TileExplorer

TileExplorer(m=300, n=200, k=160)

# %% [markdown]
# You can build two-dimensional blocks from one-dimensional ones: `rows[:, None]` is a column, `columns[None, :]` is a
# row, and `rows[:, None] * K + columns[None, :]` is a BM × BK block of offsets into A.
#
# Write `tiled_product(a, b, bias, BM, BN)` → relu(A·B + bias). All tensors are fp16, or all are fp32; `bias` has N
# elements and is added to each row; the result has the type of `a`. There are no gaps between rows. Choose BK yourself:
# it must be at least 16 and may depend on K.
#
# * `acc = tl.dot(x, y, acc, input_precision="ieee")` multiplies and adds in fp32. Without `input_precision="ieee"`, a
#   GPU rounds fp32 operands to TF32, with 10 bits of mantissa.
# * Sizes need not be multiples of their tiles. Which value must a load return beyond K, so that the sum stays right?
# * Bias and relu belong in the same kernel, as its *epilogue*: the tile is still in registers when the loop ends.
#
# The check tests the values and counts elements: the kernel must read exactly M·K·⌈N/BN⌉ elements of A, K·N·⌈M/BM⌉ of B
# and N·⌈M/BM⌉ of bias, and write M·N elements.


# %% solve="tiled_product"
@jit
def tiled_product_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One tile of relu(A @ B + bias)."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        a_at = a_ptr + rows[:, None] * K + inner[None, :]
        b_at = b_ptr + inner[:, None] * N + columns[None, :]
        a = tl.load(a_at, mask=a_mask, other=0.0)
        b = tl.load(b_at, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    c = tl.maximum(acc + bias[None, :], 0.0)
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], c, mask=c_mask)
    ### END SOLUTION


def tiled_product(a, b, bias, BM, BN):
    """relu(a @ b + bias), in tiles of BM rows and BN columns."""
    ### BEGIN SOLUTION
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (cdiv(M, BM), cdiv(N, BN))
    tiled_product_kernel[grid](a, b, bias, c, M, N, K, BM=BM, BN=BN, BK=32)
    return c
    ### END SOLUTION


# %% check="tiled_product"
check("tiled_product")

# %% [markdown]
# **Predict:** M = 96, N = 160 and K = 64, with tiles of 32 × 32. How many times does your kernel read each element of
# A, and how many times each element of B?

# %%
predict("a_reads", "Each element of A is read", unit="times")
predict("b_reads", "Each element of B is read", unit="times")

# %%
from edl_labs.plots.tile_pictures import draw_bytes

with (
    requires_solution("tiled_product"),
    reveal_prediction("a_reads", "b_reads") as truth,
):
    a, b, bias = torch.randn(96, 64), torch.randn(64, 160), torch.zeros(160)
    (ran,) = launches_of(tiled_product, a, b, bias, 32, 32)
    tensors = {"a": a, "b": b, "bias": bias, "c": torch.empty(96, 160)}
    moved = dict(zip(tensors, ran.moved_bytes_by_tensor.values(), strict=True))
    least = {name: 4 * tensor.numel() for name, tensor in tensors.items()}
    axes = style.subplots(figsize=(8, 2.8))[1]
    axes = draw_bytes(axes, moved, least, title="Bytes of tiled_product")
    truth(a_reads=moved["a"] / least["a"], b_reads=moved["b"] / least["b"])

# %% [markdown]
# ## 5. Attention in one pass
#
# Attention of n queries over n keys has n² scores. As soon as n is larger than 2·d, writing the scores to memory and
# reading them again moves more bytes than q, k, v and the output together. A fused kernel never stores the scores: a
# program processes a tile of BM queries and walks over keys and values in tiles of BN.
#
# Softmax needs the maximum of all scores, which is not yet known after the first tile. So the program keeps a *running*
# maximum, sum and output. When the maximum grows, it corrects the sum and the output: whatever was added under the old
# maximum is multiplied by exp(old − new).
#
# **Predict:** a row's scores arrive in two tiles, [1, 2] and [3, 5]. By which factor are the sum and the output of the
# first tile multiplied when the second tile arrives? And what percentage of the final sum comes from the first tile?

# %%
predict("shrink", "The first tile is multiplied by", unit="1")
predict("first_share", "The first tile's share of the final sum is", unit="%")

# %%
with reveal_prediction("shrink", "first_share") as truth:
    first, second = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    shrink = torch.exp(first.max() - second.max()).item()
    kept = shrink * torch.exp(first - first.max()).sum().item()
    total = kept + torch.exp(second - second.max()).sum().item()
    print(f"the whole row's softmax: {torch.softmax(torch.cat([first, second]), 0)}")
    truth(shrink=shrink, first_share=kept / total)

# %% [markdown]
# Write `attention(q, k, v, keys, BM, BN)` → softmax(q·kᵀ / √d)·v for one head, in fp32. `q` has the shape (queries, d);
# `k` and `v` have a fixed number of rows, of which the first `keys` contain data. The other rows are padding, as in a
# batch of sequences with different lengths, and no program may read them. There are no gaps between rows, and d is a
# power of two.
#
# * `tl.full((BM,), -float("inf"), tl.float32)` is a block of −∞; `tl.trans(k)` transposes a block; `tl.where(mask, x,
#   y)` chooses lane by lane.
# * The last tile of keys may be ragged, and its missing keys must not count: give them the score −∞ *before* you take
#   the maximum.
# * `keys` may be 0. Even then, launch the kernel; it must read q once and write an output of 0.
# * Both products need `input_precision="ieee"`.
#
# The check tests the values and counts reads: q must be read once, and k and v once for each tile of queries. It also
# limits the bytes of block values that are alive at once to a few tiles, so a program cannot keep all scores of a row.


# %% solve="attention"
@jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, queries, keys, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The output of BM queries."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q_mask = rows[:, None] < queries
    q = tl.load(q_ptr + rows[:, None] * D + at[None, :], mask=q_mask, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for first in range(0, keys, BN):
        columns = first + tl.arange(0, BN)
        kv_mask = columns[:, None] < keys
        kv_at = columns[:, None] * D + at[None, :]
        k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(columns[None, :] < keys, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        shrink = tl.exp(top - new_top)
        weights = tl.exp(scores - new_top[:, None])
        v = tl.load(v_ptr + kv_at, mask=kv_mask, other=0.0)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
        top = new_top
    o = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(o_ptr + rows[:, None] * D + at[None, :], o, mask=q_mask)
    ### END SOLUTION


def attention(q, k, v, keys, BM, BN):
    """softmax(q @ k.T / sqrt(d)) @ v over the first `keys` keys."""
    ### BEGIN SOLUTION
    queries, d = q.shape
    o = torch.empty_like(q)
    grid = (cdiv(queries, BM),)
    attention_kernel[grid](q, k, v, o, queries, keys, d**-0.5, D=d, BM=BM, BN=BN)
    return o
    ### END SOLUTION


# %% check="attention"
check("attention")

# %% [markdown]
# ## 6. Where the kernels are on the roofline
#
# A kernel's *arithmetic intensity* is its FLOPs divided by the bytes that it moves to and from memory. **Predict** for
# an H100 (989 TFLOP/s in fp16, 3.35 TB/s): attention with n = 4,096 queries and keys and d = 128 in fp16 takes 4·n²·d
# FLOPs. A fused kernel moves q, k, v and the output once. What is its intensity in FLOP/B? An unfused version also
# writes the scores, reads them for the softmax, writes the weights and reads the weights again. What is its intensity?

# %%
predict("fused", "The intensity of the fused kernel is", unit="FLOP/B")
predict("unfused", "With scores and weights in memory it is", unit="FLOP/B")

# %%
with reveal_prediction("fused", "unfused") as truth:
    n, d = 4096, 128
    flop, once = 4 * n * n * d, 2 * 4 * n * d
    intensities = {"fused": flop / once, "unfused": flop / (once + 2 * 4 * n * n)}
    print(f"the ridge of this machine: {989e12 / 3.35e12:.0f} FLOP/B")
    truth(**intensities)

# %% [markdown]
# The picture assumes that each kernel reaches 70 % of what its bytes and FLOPs allow, as good kernels do.

# %%
from edl_labs.plots.roofs import roofline as draw_roofline
from edl_labs.roofline import Machine, Point, bound, work

PEAKS = {"fp16": 989e12}
H100 = Machine.simple("H100", peak_flop_per_s=PEAKS, bandwidth_byte_per_s=3.35e12)


def good_kernel(name, flop, moved_bytes):
    """The point of a kernel at 70 % of its roof."""
    one = work.Work(flop, 0, moved_bytes, "fp16", name)
    return Point(name, one, time_s=bound(H100, one).time_s / 0.7)


# %%
n, d, rows, columns = 4096, 128, 4096, 4096
attention_flop, io = 4 * n * n * d, 2 * 4 * n * d
points = [
    good_kernel("three kernels", 3 * elements, 24 * elements),
    good_kernel("scale, shift, relu", 3 * elements, 8 * elements),
    good_kernel("row softmax", 5 * rows * columns, 4 * rows * columns),
    good_kernel("scores stored", attention_flop, io + 8 * n * n),
    good_kernel("attention", attention_flop, io),
]
axes = style.subplots(figsize=(9, 4.2))[1]
axes = draw_roofline(axes, H100, points)

# %% [markdown] explain="where_on_the_roofline"
# **Explain (read by your instructor).** Where are your four kernels on the roofline of an H100, and why? (Take a
# product of 4,096 × 4,096 matrices in fp16.) For each kernel, give the intensity and the figures behind it, and say
# what limits the kernel. Which kernels does fusion move to the right, and which would a faster tensor core help? Write
# four to eight sentences.

# %% [markdown]
# ## Now on your GPU
#
# If this machine has a CUDA GPU with Triton, the next cell compiles the same source and measures it. Otherwise it only
# models the time: the bytes of `row_softmax` divided by the bandwidth of an H100.

# %%
from edl_labs.bench import compare
from edl_labs.virtual.tiles import launch_on_gpu, recorded_launches


def compiled(x):
    """Your row_softmax, with kernels that Triton has compiled."""
    with recorded_launches(launch_on_gpu):
        return row_softmax(x)


# %%
shape = (4096, 1000)
least_s = 2 * 2 * shape[0] * shape[1] / 3.35e12
print(f"modelled, H100 at full bandwidth: {seconds(least_s)}")
if torch.cuda.is_available():
    matrix = torch.randn(shape, device="cuda").half()
    sides = {
        "torch": lambda: torch.softmax(matrix, 1),
        "yours": lambda: compiled(matrix),
    }
    print("measured:", compare(sides, equal=False))
else:
    print("not measured: there is no CUDA GPU here")

# %% [markdown]
# ## Practice: rows longer than a block
#
# A row of a million columns does not fit into a block. Write `long_rows(x, BLOCK)` → the softmax of each row, like
# `row_softmax` but in blocks of BLOCK columns, with one program per row. Reading the row once for the maximum, once for
# the sum and once for the result takes 3 reads; a running maximum and a running sum need only 2. The check tests that
# the values are right, that each element is read twice and written once, and that no program keeps more than a few
# blocks.


# %% solve="long_rows"
@jit
def long_rows_kernel(x_ptr, y_ptr, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    """The softmax of one row, block by block."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    top = tl.full((1,), -float("inf"), tl.float32)
    total = tl.zeros((1,), tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x_at = x_ptr + row * x_stride + at
        x = tl.load(x_at, mask=at < columns, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x_at = x_ptr + row * x_stride + at
        x = tl.load(x_at, mask=at < columns, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - top) / total
        tl.store(y_ptr + row * y_stride + at, y, mask=at < columns)
    ### END SOLUTION


def long_rows(x, BLOCK):
    """A new matrix with the softmax of each row of x."""
    ### BEGIN SOLUTION
    rows, columns = x.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    strides = (x.stride(0), y.stride(0))
    long_rows_kernel[(rows,)](x, y, columns, *strides, BLOCK=BLOCK)
    return y
    ### END SOLUTION


# %% check="long_rows"
check("long_rows")

# %% [markdown]
# ## Practice: causal attention
#
# In a language model, query i sees the keys 0 to i. In about half of all tiles, no query sees any of the keys, and a
# good kernel skips these tiles. Write `causal(q, k, v, BM, BN)`, which is like `attention` but has as many keys as
# queries. The check tests the values and counts tiles: a program must read the tiles of BN keys up to the tile of its
# last query, and no others. All programs together read Σᵢ ⌈min((i + 1)·BM, n) / BN⌉ tiles.


# %% solve="causal"
@jit
def causal_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, n, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The output of BM queries."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q_mask = rows[:, None] < n
    q = tl.load(q_ptr + rows[:, None] * D + at[None, :], mask=q_mask, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, n)
    for first in range(0, end, BN):
        columns = first + tl.arange(0, BN)
        kv_mask = columns[:, None] < n
        kv_at = columns[:, None] * D + at[None, :]
        k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        shrink = tl.exp(top - new_top)
        weights = tl.exp(scores - new_top[:, None])
        v = tl.load(v_ptr + kv_at, mask=kv_mask, other=0.0)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
        top = new_top
    tl.store(o_ptr + rows[:, None] * D + at[None, :], acc / total[:, None], mask=q_mask)
    ### END SOLUTION


def causal(q, k, v, BM, BN):
    """Attention in which query i sees the keys 0 to i."""
    ### BEGIN SOLUTION
    n, d = q.shape
    o = torch.empty_like(q)
    causal_kernel[(cdiv(n, BM),)](q, k, v, o, n, d**-0.5, D=d, BM=BM, BN=BN)
    return o
    ### END SOLUTION


# %% check="causal"
check("causal")

# %% [markdown]
# ## Practice: the backward pass
#
# Training needs the gradients of q, k and v. The forward pass did not keep the weights, so the backward pass computes
# them again, tile by tile. The forward pass keeps only one number for each query: `lse`, the logarithm of the sum of
# the exponentials of the query's scaled scores. **Predict:** with 4,096 queries and keys, how many times as many
# weights are there as values of lse?

# %%
predict(
    "kept", "Compared with the values of lse, the weights are", unit="times as many"
)

# %%
with reveal_prediction("kept") as truth:
    n = 4096
    truth(kept=n * n / n)

# %% [markdown]
# With lse, a weight is exp(score − lse), so you need no running maximum, no sum and no rescaling. The gradient of the
# weights is o_grad·vᵀ. A row of weights sums to 1, so the gradient of the softmax subtracts one number per row,
# delta = Σ o_grad ⊙ o:
#
# * gradient of the scores: weights ⊙ (o_grad·vᵀ − delta)
# * gradient of q: (gradient of the scores)·k / √d
#
# Write `attention_backward(q, k, v, o, o_grad, lse, BM, BN)` → the gradient of q, for one head in fp32. `q`, `o` and
# `o_grad` have the shape (queries, d), `k` and `v` the shape (keys, d), `lse` the shape (queries,); every query sees
# every key. All three products need `input_precision="ieee"`. The check tests the values, including cases with scores
# around 120. It counts reads: q, o, o_grad and lse must be read once, and k and v once for each tile of BM queries.
# It also limits the bytes of block values that are alive at once.
#
# The gradients of k and v need the same loop with the roles exchanged: a program has BN keys and loops over all
# queries.


# %% solve="attention_backward"
@jit
def attention_backward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, o_grad_ptr, lse_ptr, q_grad_ptr, queries, keys, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The gradient of BM queries."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q_mask = rows[:, None] < queries
    q_at = rows[:, None] * D + at[None, :]
    q = tl.load(q_ptr + q_at, mask=q_mask, other=0.0)
    o_grad = tl.load(o_grad_ptr + q_at, mask=q_mask, other=0.0)
    o = tl.load(o_ptr + q_at, mask=q_mask, other=0.0)
    delta = tl.sum(o_grad * o, axis=1)
    lse = tl.load(lse_ptr + rows, mask=rows < queries, other=0.0)
    q_grad = tl.zeros((BM, D), tl.float32)
    for first in range(0, keys, BN):
        columns = first + tl.arange(0, BN)
        kv_mask = columns[:, None] < keys
        kv_at = columns[:, None] * D + at[None, :]
        k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + kv_at, mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
        weights = tl.exp(scores)
        weights_grad = tl.dot(o_grad, tl.trans(v), input_precision="ieee")
        scores_grad = weights * (weights_grad - delta[:, None])
        q_grad = tl.dot(scores_grad, k, q_grad, input_precision="ieee")
    tl.store(q_grad_ptr + q_at, q_grad * scale, mask=q_mask)
    ### END SOLUTION


def attention_backward(q, k, v, o, o_grad, lse, BM, BN):
    """The gradient of q in softmax(q @ k.T / sqrt(d)) @ v."""
    ### BEGIN SOLUTION
    queries, d = q.shape
    q_grad = torch.empty_like(q)
    grid = (cdiv(queries, BM),)
    attention_backward_kernel[grid](
        q, k, v, o, o_grad, lse, q_grad, queries, k.shape[0], d**-0.5, D=d, BM=BM, BN=BN
    )
    return q_grad
    ### END SOLUTION


# %% check="attention_backward"
check("attention_backward")

# %% [markdown]
# ## Practice: a gelu in the epilogue
#
# Write `gelu_product(a, b, bias, BM, BN)` → gelu(A·B + bias), which is checked like `tiled_product`. The exact gelu is
# x·(1 + erf(x / √2)) / 2; use `tl.erf`. There is no `tl.tanh`.


# %% solve="gelu_product"
@jit
def gelu_product_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One tile of gelu(A @ B + bias)."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        a_at = a_ptr + rows[:, None] * K + inner[None, :]
        b_at = b_ptr + inner[:, None] * N + columns[None, :]
        a = tl.load(a_at, mask=a_mask, other=0.0)
        b = tl.load(b_at, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    x = acc + bias[None, :]
    c = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], c, mask=c_mask)
    ### END SOLUTION


def gelu_product(a, b, bias, BM, BN):
    """gelu(a @ b + bias), in tiles of BM rows and BN columns."""
    ### BEGIN SOLUTION
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (cdiv(M, BM), cdiv(N, BN))
    gelu_product_kernel[grid](a, b, bias, c, M, N, K, BM=BM, BN=BN, BK=32)
    return c
    ### END SOLUTION


# %% check="gelu_product"
check("gelu_product")

# %% [markdown]
# ## Practice: programs that share an output
#
# The gradient of a bias contains the sum of each column of a tall matrix. One program for each BN columns would leave
# most of a GPU idle, so every tile of BM × BN elements gets a program, and ⌈M/BM⌉ programs add to the same sum. If they
# load, add and store, one program may overwrite what another one has added: this is a *race*. `tl.atomic_add` adds in
# memory without a race. But the order of its additions differs from run to run, and so do the last bits of the sum. The
# alternative is a matrix of partial sums and a second kernel that adds them: it needs one more launch and produces the
# same bits every time.
#
# Write `column_sums(x, BM, BN)` → the sum of each column of a float16 matrix, in float32, in one of these two ways. The
# check tests that the values are right and that there are no races. Each element of x must be read once, and each tile
# of x needs at least one program. For each column, at most 2·⌈M/BM⌉ + 1 elements of allocated memory may be read or
# written.


# %% solve="column_sums"
@jit
def column_sums_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Add the sums of one tile to the output."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    x_mask = (rows[:, None] < M) & (columns[None, :] < N)
    x_at = x_ptr + rows[:, None] * N + columns[None, :]
    x = tl.load(x_at, mask=x_mask, other=0.0).to(tl.float32)
    tl.atomic_add(y_ptr + columns, tl.sum(x, axis=0), mask=columns < N)
    ### END SOLUTION


def column_sums(x, BM, BN):
    """A new vector with the sum of each column of x."""
    ### BEGIN SOLUTION
    M, N = x.shape
    y = torch.zeros(N, dtype=torch.float32, device=x.device)
    column_sums_kernel[(cdiv(M, BM), cdiv(N, BN))](x, y, M, N, BM=BM, BN=BN)
    return y
    ### END SOLUTION


# %% check="column_sums"
check("column_sums")

# %% [markdown]
# ## Practice: the order of tiles
#
# A GPU starts programs in the order of their ids, about a hundred at a time, and these share the L2 cache. Programs in
# the same row of tiles read the same strip of A, and programs in the same column read the same strip of B. **Predict:**
# C has 9 × 9 tiles, and nine programs run together. How many strips do they read if they compute a whole row of C? And
# how many if they compute a square of 3 × 3 tiles?

# %%
predict("a_row", "A row of nine tiles reads", unit="strips")
predict("a_square", "A square of nine tiles reads", unit="strips")

# %%
with reveal_prediction("a_row", "a_square") as truth:
    truth(a_row=1 + 9, a_square=3 + 3)

# %% [markdown]
# So good kernels map ids to tiles in groups of rows: first come the tiles of the first `group` rows, column by column,
# then those of the next `group` rows. The last group has the rows that are left. Write
# `tile_order(pid, rows, columns, group)` → (row, column) of the tile that program `pid` computes, counted from 0. A
# kernel would do the same arithmetic with `tl.program_id(0)`.


# %% solve="tile_order"
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    ### BEGIN SOLUTION
    first = pid // (group * columns) * group
    size = min(rows - first, group)
    inside = pid % (group * columns)
    return first + inside % size, inside // size
    ### END SOLUTION


# %% check="tile_order"
check("tile_order")

# %% [markdown]
# ## Practice: which attention runs
#
# `torch.nn.functional.scaled_dot_product_attention` has several implementations. `flash` is one fused kernel, like
# yours; `math` composes products and a softmax, with the n × n matrix in memory. PyTorch chooses an implementation for
# each call and does not report its choice. On a CPU (PyTorch 2.15) it chooses `flash` if all of these conditions hold,
# and `math` otherwise:
#
# 1. `dropout_p` is 0;
# 2. query, key and value have the same head width (their last size);
# 3. all three have the same batch size, so that nothing is broadcast;
# 4. a mask, if there is one, has 2 or 4 dimensions;
# 5. the mask does not need a gradient;
# 6. the elements of a head are contiguous: the last stride is 1.
#
# A GPU has different rules: on CUDA, for example, `flash` accepts no mask at all, only fp16 and bf16, and a head
# width of at most 256. **Predict:** on a CPU, which implementation runs for a call with a boolean mask of shape (n,
# n)?

# %%
predict("masked_call", "A call with a mask runs", choices=["flash", "math"])


# %%
def runs_fused(**more):
    """Whether PyTorch runs a small call when `flash` is all that it may use."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.ones(1, 2, 8, 16)
    try:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(q, q, q, **more)
    except RuntimeError:
        return False
    return True


# %%
with reveal_prediction("masked_call") as truth:
    mask = torch.ones(8, 8, dtype=torch.bool)
    truth("flash" if runs_fused(attn_mask=mask) else "math")

# %% [markdown]
# Write `which_sdpa(call)` → `"flash"` or `"math"` for a call on a CPU. `call` is a dict:
#
# | entry | what it means |
# |---|---|
# | `query`, `key`, `value` | their shapes: batch, heads, rows, head width |
# | `dtype` | the dtype of all three, such as `"float32"` |
# | `mask`, `mask_requires_grad` | the mask's shape or `None`, and whether it needs a gradient |
# | `requires_grad` | whether query, key and value need gradients |
# | `dropout_p`, `is_causal` | as in the call |
# | `last_stride` | the distance between adjacent elements of a head, in elements |


# %% solve="which_sdpa"
def which_sdpa(call):
    """The implementation that PyTorch chooses for a call on a CPU."""
    ### BEGIN SOLUTION
    widths = {call[name][-1] for name in ("query", "key", "value")}
    mask_fits = call["mask"] is None or len(call["mask"]) in (2, 4)
    batches = {call[name][0] for name in ("query", "key", "value")}
    fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
    dense = call["last_stride"] == 1 and not call["mask_requires_grad"]
    return "flash" if fits and mask_fits and dense else "math"
    ### END SOLUTION


# %% check="which_sdpa"
check("which_sdpa")

# %% [markdown]
# ## Where you are

# %%
Progress("lab11_tiles")
