# %% [markdown]
# # Rooflines: the fastest your code could ever run
#
# How good is 300 GFLOP/s? A comparison with yesterday's code cannot tell you. Instead, divide by the highest speed that
# this work could ever reach on this machine. You get a number between 0 and 1, which says whether more tuning can pay
# off.
#
# After this lab you can
#
# * count the operations and the bytes of a layer, a fused chain and a whole transformer block, and use your count to
#   check a FLOP counter;
# * draw the roofs of a machine from measurements, and say which of them limits a piece of work;
# * say what fusing a chain of kernels saves, and for which chains it saves a lot;
# * tell which of three things limits a layer on a machine, and predict how a machine that you do not have would run it;
# * say how much a change can gain before you make it, and how large a batch must be to hide the network.
#
# **About 214 minutes (estimated)**, in two sittings: the first ends with section 5. Practice carries no points. It
# takes another 51 minutes (estimated), and its sections can be done in any order. There you find the batch at which a
# layer stops waiting for memory, and decide how many nodes to use.
#
# | exercise | section | minutes |
# |---|---|---|
# | `intensity` | 2 | 40 |
# | `ridge_and_bound` | 3 | 23 |
# | `fused_or_not` | 5 | 26 |
# | `count_a_model` | 6 | 23 |
# | `why_not_on_the_roof` | 7 | 31 |
# | `diagnose` | 8 | 32 |
# | `amdahl` | 10 | 17 |
# | `network_roofline` | 11 | 22 |
#
# | practice | `minibatch_crossover` | `scaling_plan` |
# |---|---|---|
# | section | 12 | 13 |
# | minutes | 20 | 31 |
#
# No GPU is needed: you measure the machine that you have. In each section, *write your prediction down* before you run
# the next cell. If there is a box, enter a number, with or without its unit, and press Enter. Only then does the result
# appear next to it. Stuck? `hint("intensity")` gives the hints of an exercise, one at a time. Lecture slides are cited
# by their deck: [001] course introduction, [002] software perspective, [003] performance and profiling, [004] deep
# learning, hopefully faster.
#
# A check that fails shows the first wrong case, with what your code returned; `case("intensity")` gives that case's
# inputs as Python values, so that you can try your code on them.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.requires_solution import requires_solution
    from edl_labs.ui.predictions import predict, reveal_prediction
    from edl_labs.ui.progress_bar import ProgressBar
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
ceilings_s = 20.0
measure_s = 0.4
width = 512

# %% given
import math

from edl_labs import units

# %%
Progress("lab02_roofline")

# %% [markdown]
# ## 1. The speed of light
#
# Deck [004] describes a computer by two numbers: how fast it computes, and how fast it moves data between memory and
# chip. A GPU of 2015 has 6 TFLOP/s and 300 GB/s. It does both at the same time, so work takes *as long as the slower of
# the two*.
#
# The example is a matrix of 1024 × 512 times a vector, in FP32. Every number is read once, and the result is written
# once. Each element of the matrix costs one multiplication and one addition.
#
# **Predict:** which takes longer, memory or arithmetic, and by what factor? How many of the 6000 GFLOP/s remain?

# %%
predict("longer", "The one that takes longer is", choices=("memory", "arithmetic"))
predict("longer_by", "It takes longer by a factor of", unit="times")
predict("remains", "What remains of 6000 GFLOP/s is", unit="GFLOP/s")

# %%
rows, columns = 1024, 512
flop, moved_bytes = 2 * rows * columns, 4 * (rows * columns + columns + rows)
memory_s, compute_s = moved_bytes / 300e9, flop / 6e12
times = units.seconds(memory_s), units.seconds(compute_s)
with reveal_prediction("longer", "longer_by", "remains") as truth:
    at_best, ratio = flop / max(memory_s, compute_s), memory_s / compute_s
    print("memory {}, arithmetic {}:".format(*times), f"{ratio:.0f} to 1")
    print("at best", units.flop_rate(at_best, digits=5), "of 6 TFLOP/s")
    print("(the slide divides rounded numbers, and gets 142 GFLOP/s)")
    longer = "memory" if ratio > 1 else "arithmetic"
    truth(longer=longer, longer_by=max(ratio, 1 / ratio), remains=at_best)

# %% [markdown]
# However you round these numbers, the conclusion is the same: a faster arithmetic unit does not help if it is idle
# nearly all of the time. *Even substantial change in this number is irrelevant*, the slide says of the shorter time.
#
# The number that decides is the quotient FLOPs / bytes, the **arithmetic intensity**. Here it is 0.5 FLOP/B, while the
# machine could do 6e12 / 300e9 = 20 FLOPs for every byte it moves.
#
# Deck [004] names three levers: different software, different hardware, and a different model. It gives two reasons to
# pull them. First, you learn sooner from experiments that end sooner. Second, scale pays off: the loss of language
# models falls as a power of model size, data and compute (Kaplan et al., 2020; Hoffmann et al., 2022), so higher
# throughput buys a better model. A roofline says which lever can help at all.

# %% [markdown]
# ## 2. Operations and bytes
#
# Deck [002] has a table of intensities for FP16. **Predict** three of its rows, within a factor of two: a linear layer
# (4096 outputs, 1024 inputs) with a batch of 512, the same layer with a batch of 1, and a ReLU.

# %%
predict("linear_512", "The linear layer with a batch of 512 has", unit="FLOP/B")
predict("linear_1", "The same layer with a batch of 1 has", unit="FLOP/B")
predict("relu_has", "A ReLU has", unit="FLOP/B")

# %% [markdown]
# Now compute them. `work_of(op)` receives one operation as a dict, such as `{"kind": "relu", "elements": 1000,
# "itemsize": 2}`, and returns `(flop, moved_bytes)`. Each operand is read once, and the result is written once. No
# kernel can move less, and a good kernel comes close to this.
#
# | kind | its sizes | operands | FLOPs |
# |---|---|---|---|
# | `"gemm"` | `m`, `n`, `k` | A: m × k, B: k × n, result | 2 per multiply-add |
# | `"matvec"` | `m`, `n` | matrix m × n, vector, result | 2 per multiply-add |
# | `"linear"` | `batch`, `inputs`, `outputs` | input, weights, result; no bias | 2 per multiply-add |
# | `"pool"` | `batch`, `channels`, `size`, `kernel`, `stride`, `padding` | input, result | 1 per position in a window |
# | `"conv"` | those of `"pool"`, and `filters` | input, weights, result; no bias | 2 per multiply-add |
# | `"relu"` | `elements` | input, result | 1 per element |
# | `"layer_norm"` | `rows`, `features` | input, result, weights and biases (one of each per feature) | 8 per element |
#
# All have `itemsize`, the bytes of an element. The weights and biases of a `"linear"`, `"conv"` or `"layer_norm"` may
# be stored in fewer bytes, as is common for inference: then `weight_itemsize` gives their size. If it is missing,
# they have `itemsize` bytes, too. Images are `size` × `size`, with `padding` (which is not in memory) on all four
# sides. Along a side there are `(size + 2 * padding - kernel) // stride + 1` windows. A filter of a convolution reads
# all channels. Every position in a window counts, even one on the padding.


# %% solve="intensity"
def work_of(op):
    """(flop, moved_bytes) of an operation; operands and result are each moved once."""
    ### BEGIN SOLUTION
    kind, narrow = op["kind"], op.get("weight_itemsize", op["itemsize"])
    if kind in ("conv", "pool"):
        side = (op["size"] + 2 * op["padding"] - op["kernel"]) // op["stride"] + 1
        taps, image = op["kernel"] ** 2, op["batch"] * op["channels"] * op["size"] ** 2
        if kind == "pool":
            spots = op["batch"] * op["channels"] * side**2
            return taps * spots, op["itemsize"] * (image + spots)
        m, k, n = op["batch"] * side**2, op["channels"] * taps, op["filters"]
        return 2 * m * k * n, op["itemsize"] * (image + m * n) + narrow * k * n
    if kind == "relu":
        return op["elements"], op["itemsize"] * 2 * op["elements"]
    if kind == "layer_norm":
        count = op["rows"] * op["features"]
        return 8 * count, op["itemsize"] * 2 * count + narrow * 2 * op["features"]
    sides = {
        "gemm": ("m", "k", "n"),
        "matvec": ("m", "n", None),
        "linear": ("batch", "inputs", "outputs"),
    }[kind]
    m, k, n = (op[name] if name else 1 for name in sides)
    return 2 * m * k * n, op["itemsize"] * (m * k + m * n) + narrow * k * n
    ### END SOLUTION


# %% check="intensity"
check("intensity")

# %%
layer = {"kind": "linear", "inputs": 1024, "outputs": 4096, "itemsize": 2}
image = {"batch": 1, "channels": 64, "size": 56, "itemsize": 2}
image |= {"kernel": 3, "stride": 1, "padding": 1}
table = {
    "linear, batch 512": layer | {"batch": 512},
    "linear, batch 1": layer | {"batch": 1},
    "… weights of 1 byte": layer | {"batch": 1, "weight_itemsize": 1},
    "max-pool 3×3": image | {"kind": "pool"},
    "ReLU": {"kind": "relu", "elements": 1 << 20, "itemsize": 2},
    "layer norm": {"kind": "layer_norm", "rows": 512, "features": 1024, "itemsize": 2},
    "conv 3×3, 64 to 64": image | {"kind": "conv", "filters": 64},
}

# %%
with (
    requires_solution("intensity"),
    reveal_prediction("linear_512", "linear_1", "relu_has") as truth,
):
    has = {}
    for name, op in table.items():
        flop, moved_bytes = work_of(dict(op))
        has[name] = flop / moved_bytes
        print(f"{name:<20} {has[name]:8.2f} FLOP/B")
    large, single = has["linear, batch 512"], has["linear, batch 1"]
    truth(linear_512=large, linear_1=single, relu_has=has["ReLU"])

# %% [markdown]
# The batch of 512 and the batch of 1 are the same layer with the same weights: what differs is how often each weight is
# used once it has been fetched. Weights of one byte double the intensity of a batch of 1, and hardly change that of a
# batch of 512. That is why weights are rounded in a model that answers one person at a time. No GPU ever built is
# balanced for a ReLU.
#
# One trap: the max-pool in the table counts nine operations per window. A maximum of nine numbers takes only eight
# comparisons, which would give 2.0 FLOP/B. No decision depends on it, but say what you count.

# %% [markdown]
# ## 3. Roofs
#
# Plot FLOP/s against intensity, with both axes logarithmic. Memory allows bandwidth × intensity, which is a slope.
# The arithmetic allows its peak, which is a ceiling. They meet at the **ridge point**, and all programs lie below
# both. A real machine has several ceilings (one for each dtype) and several slopes (one for each level of memory).
#
# **Predict:** a V100's tensor cores do 125 TFLOP/s, and its memory moves 0.9 TB/s. How many of the rows that you just
# printed can ever reach the ceiling?

# %%
predict("rows_at_ceiling", "The number of rows that reach the ceiling is", unit="rows")

# %% [markdown]
# Write two functions. A `machine` is `{"peak_flop_per_s": {"fp16": ..., ...}, "bandwidth_byte_per_s": {"L2": ...,
# "HBM": ...}}`. Work is `{"flop": ..., "dtype": ..., "moved_bytes": {"L2": ..., "HBM": ...}}`: the bytes differ from
# level to level, because a cache serves many requests itself.
#
# * `ridge_point(machine, dtype, level)`: the intensity, in FLOP/B, at which the two roofs meet;
# * `lower_bound(machine, work)` → `(time_s, limiter)`: the shortest possible time when arithmetic and all levels work
#   at the same time, and what takes that long: `"compute"` or the name of a level.
#
# You may call `bound` from `edl_labs.roofline`, which looks at one level at a time.


# %% solve="ridge_and_bound"
def ridge_point(machine, dtype, level):
    """FLOP/B at which the ceiling of `dtype` and the slope of `level` meet."""
    ### BEGIN SOLUTION
    return machine["peak_flop_per_s"][dtype] / machine["bandwidth_byte_per_s"][level]
    ### END SOLUTION


def lower_bound(machine, work):
    """(time_s, limiter): the shortest possible time, and what takes that long."""
    ### BEGIN SOLUTION
    spent_s = {
        level: count / machine["bandwidth_byte_per_s"][level]
        for level, count in work["moved_bytes"].items()
    }
    spent_s["compute"] = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    limiter = max(spent_s, key=spent_s.get)
    return spent_s[limiter], limiter
    ### END SOLUTION


# %% check="ridge_and_bound"
check("ridge_and_bound")

# %%
v100 = {"peak_flop_per_s": {"fp16": 125e12}, "bandwidth_byte_per_s": {"HBM": 900e9}}

# %%
with (
    requires_solution("ridge_and_bound"),
    reveal_prediction("rows_at_ceiling") as truth,
):
    print(f"computed for a V100, ridge: {ridge_point(v100, 'fp16', 'HBM'):.1f} FLOP/B")
    by_compute = 0
    for name, op in table.items():
        flop, moved_bytes = work_of(dict(op))
        bound_s, limiter = lower_bound(
            v100, {"flop": flop, "dtype": "fp16", "moved_bytes": {"HBM": moved_bytes}}
        )
        by_compute += limiter == "compute"
        row = f"{name:<20} at least {units.seconds(bound_s):>8}, set by {limiter:<8}"
        print(row, units.percent(flop / bound_s / 125e12), "of the peak")
    truth(by_compute)

# %% [markdown]
# The same as a picture:

# %%
from edl_labs import roofline
from edl_labs.plots import style
from edl_labs.plots.roofs import roofline as draw_roofline
from edl_labs.roofline import Machine, Point, work

slide_machine = Machine.simple(
    "V100", peak_flop_per_s={"fp16": 125e12}, bandwidth_byte_per_s=900e9
)

# %%
with requires_solution("intensity"):
    at_best = []
    for name, op in table.items():
        flop, moved_bytes = work_of(dict(op))
        needed = work.Work(flop, 0, moved_bytes, "fp16", name)
        best_s = roofline.bound(slide_machine, needed).time_s
        at_best.append(Point(name, needed, best_s, best_s, best_s))
    figure, axes = style.subplots(figsize=(9, 4.6))
    title = "The slide's table on a V100, at best (computed)"
    axes = draw_roofline(axes, slide_machine, at_best, title=title)

# %% [markdown]
# With a ridge at 138.9 FLOP/B, only two rows can be limited by arithmetic: the linear layer with a large batch and the
# convolution. For the others, a chip with twice the FLOP/s would change nothing at all.

# %% [markdown]
# ## 4. The roofs of your machine
#
# A datasheet says what a chip could do. What can yours do? `roofline.ceilings()` measures it, which takes a few
# seconds. It reads, copies and adds (*triad*: a = b + s·c) larger and larger data, so that each level of memory shows
# up. It also multiplies matrices of many shapes in each dtype. If there is a GPU, it measures the GPU in the same
# way, and compares it with the datasheet. Not every peak can be reached: according to deck [004], CUDA code got less
# than half of the peak of some of NVIDIA's Kepler chips. The result is stored, so a second call is quick;
# `refresh=True` measures again. A core's own caches, L1 and L2, are so fast that only compiled code can measure their
# rate. On a machine without a C compiler they are skipped.
#
# **Predict** for this machine: at how many GB/s does its main memory copy, how many GFLOP/s does it reach in FP32, and
# where is its ridge? (The V100: 900 GB/s, 15 700 GFLOP/s in FP32.) Measuring takes about 20 seconds, longer on a busy
# machine.

# %%
predict("my_copy", "Its main memory copies at", unit="GB/s")
predict("my_fp32", "In FP32 it reaches", unit="GFLOP/s")
predict("my_ridge", "Its ridge in FP32 is at", unit="FLOP/B")

# %%
machine = roofline.ceilings(budget_s=ceilings_s, progress=ProgressBar())
measured = [f"{name:>6}: {machine.settings[name]}" for name in machine.unmeasured]
for level in machine.levels:
    rates = []
    for pattern, one in level.bandwidth.items():
        doubt = units.percent(one.half_width, digits=2)
        rates.append(f"{pattern} {units.byte_rate(one.rate)} ± {doubt}")
    measured.append(f"{level.name:>6}: {', '.join(rates)}")
for dtype, peak in machine.matmul.items():
    doubt = units.percent(peak.half_width, digits=2)
    ridge = machine.ridge_flop_per_byte(dtype)
    rate = f"{units.flop_rate(peak.rate)} ± {doubt}"
    measured.append(f"{dtype:>6}: {rate}, ridge {ridge:.3g} FLOP/B")

# %%
with reveal_prediction("my_copy", "my_fp32", "my_ridge") as truth:
    print(machine.name, *measured, sep="\n")
    copied, multiplied = machine.levels[-1].ceiling("copy"), machine.matmul["fp32"]
    ridge_fp32 = machine.ridge_flop_per_byte("fp32")
    figure, axes = style.subplots(figsize=(9, 4.6))
    axes = draw_roofline(axes, machine, [])
    truth(my_copy=copied.rate, my_fp32=multiplied.rate, my_ridge=ridge_fp32)

# %% [markdown]
# If you can use a machine with a GPU for an hour, you can compare it with this one: run `edl-labs record --mine` there,
# which writes the folder `my_recordings`, and put that folder next to this notebook.

# %%
from edl_labs.bench import measured_here

print(measured_here("roofs"))

# %% [markdown]
# Look at the intervals first (±). Wide intervals mean that something else was running: close it and measure again.
#
# Each level that is further away is slower, and main memory has the lowest slope: the *same* loop runs at several
# speeds, depending on where its data are. A roof for reading is not a roof for copying, and either may be higher. A
# copy's rate counts the bytes of both directions. Writing a cache line may first fetch it, which slows the copy. But a
# single stream of reads may not keep the memory busy, and then reading is slower. Now compare the ridges. Most CPUs
# have a small one, so a layer that is memory-bound on a V100 may be compute-bound here. *An operation is not
# memory-bound. An operation on a machine is.*

# %% [markdown]
# ## 5. Two kernels or one?
#
# Deck [004] computes C = C + AB for matrices of 512 × 512 and gets 64 FLOP/B, and remarks: "we analyzed two operations
# as one". **Predict:** what is the intensity if one kernel multiplies and a second kernel adds?

# %%
predict("two_kernels", "Two kernels together have", unit="FLOP/B")

# %% [markdown]
# A `chain` is a list of steps `{"op": ..., "reads": [names of tensors], "writes": name, "flop": ...}`. Each step writes
# a new tensor, and may read the same tensor twice. `size_bytes` says how large each tensor is, and `keep` names the
# results that must be in memory at the end (the last one, and perhaps what the backward pass will need).
# `intensities(chain, size_bytes=..., keep=...)` returns `(unfused, fused)`:
#
# * *unfused*, each step is a kernel: it reads what it needs (each tensor once) from memory and writes its result there;
# * *fused*, one kernel runs the whole chain and accesses memory only where it cannot avoid it.


# %% solve="fused_or_not"
def intensities(chain, *, size_bytes, keep):
    """(unfused, fused) FLOP/B of a chain, as separate kernels and as one kernel."""
    ### BEGIN SOLUTION
    apart = [name for step in chain for name in {*step["reads"], step["writes"]}]
    inside = {step["writes"] for step in chain}
    together = {
        name for step in chain for name in step["reads"] if name not in inside
    } | set(keep)
    work = sum(step["flop"] for step in chain)
    return tuple(
        work / sum(size_bytes[name] for name in moved) for moved in (apart, together)
    )
    ### END SOLUTION


# %% check="fused_or_not"
check("fused_or_not")

# %%
n, square = 512, 4 * 512 * 512
chain = [
    {
        "op": "multiply",
        "reads": ["A", "B"],
        "writes": "AB",
        "flop": n * n * (2 * n - 1),
    },
    {"op": "add", "reads": ["AB", "C"], "writes": "C new", "flop": n * n},
]

# %%
with requires_solution("fused_or_not"), reveal_prediction("two_kernels") as truth:
    sizes = dict.fromkeys(("A", "B", "AB", "C", "C new"), square)
    unfused, fused = intensities(chain, size_bytes=sizes, keep=["C new"])
    print(f"two kernels {unfused:.1f} FLOP/B, one kernel {fused:.1f} FLOP/B")
    print("the product AB went to memory and came straight back")
    truth(unfused)

# %% [markdown]
# Both ways do exactly the same FLOPs. Fusing never does less arithmetic, it only moves fewer bytes. So it helps work
# that is limited by memory, and a chain of elementwise steps most of all. Results that training keeps for the backward
# pass must be written in any case.

# %% [markdown]
# ## 6. Count a model
#
# Matrix products do nearly all operations of a transformer, so its FLOPs follow from its shapes. Here is one block as a
# listing. `X @ Y` is a product, and there are `batch × tokens` rows unless the listing says otherwise:
#
# ```text
# q = norm(x) @ Wq                  width -> width, seen as `heads` heads of width / heads
# k, v = norm(x) @ Wk, norm(x) @ Wv width -> kv_heads * (width / heads) each
# a = softmax(q @ k.T)              for each sequence and each of the `heads`: tokens × tokens
# h = x + (a @ v) @ Wo              width -> width; each key and value head serves heads / kv_heads query heads
# u = act(norm(h) @ W1)             width -> hidden
# u = u * (norm(h) @ W3)            width -> hidden, only if `gated`
# y = h + u @ W2                    hidden -> width
# ```
#
# **Predict:** the backward pass needs how many times as many FLOPs as the forward pass? Think of one product Y = X W
# whose gradient dY is known. What must be computed, and with how many products?

# %%
predict(
    "back_over_forward", "Compared with a forward pass, its FLOPs are", unit="times"
)

# %% [markdown]
# `count_block(shape)` returns `(forward_flop, backward_flop)`, accurate to within 1 %. Count products only (no norm,
# softmax or activation). `shape` has `batch`, `tokens`, `width`, `heads`, `kv_heads`, `hidden`, `gated` and `frozen`.
# There is no mask: attention computes all tokens × tokens scores. The backward pass computes the gradient of `x`, and
# those of the weights W unless the block is `frozen` (as when only an adapter in front of it is trained).


# %% solve="count_a_model"
def count_block(shape):
    """(forward_flop, backward_flop) of the block's products."""
    ### BEGIN SOLUTION
    rows, d = shape["batch"] * shape["tokens"], shape["width"]
    kv = d * shape["kv_heads"] // shape["heads"]
    dense = (
        2 * rows * d * (2 * d + 2 * kv + (3 if shape["gated"] else 2) * shape["hidden"])
    )
    attention = 2 * 2 * rows * shape["tokens"] * d
    return dense + attention, (1 if shape["frozen"] else 2) * dense + 2 * attention
    ### END SOLUTION


# %% check="count_a_model"
check("count_a_model")

# %%
with (
    requires_solution("count_a_model"),
    reveal_prediction("back_over_forward") as truth,
):
    small = {"batch": 1, "tokens": 128, "width": 512, "heads": 8, "kv_heads": 8}
    passes = count_block(small | {"hidden": 2048, "gated": False, "frozen": False})
    print("dX = dY W' and dW = X' dY: two products for each one of the forward pass")
    truth(passes[1] / passes[0])

# %% [markdown]
# A formula is only as good as its author. Here is the block as a real module, and a counter that watches what torch
# runs, forward and backward. **Predict:** what share of all its FLOPs is *not* in products?

# %%
predict("not_products", "The share of its FLOPs outside products is", unit="%")


# %%
import torch
from torch import nn
from torch.nn import functional as F


# %%
def attention(qkv, heads):
    """From queries, keys and values side by side to the heads' outputs side by side."""
    queries, keys, values = (
        part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in qkv.chunk(3, -1)
    )
    out = F.scaled_dot_product_attention(queries, keys, values)
    return out.transpose(1, 2).flatten(2)


# %%
class Block(nn.Module):
    def __init__(self, width, *, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        h = x + self.out(attention(self.qkv(self.norm1(x)), self.heads))
        return h + self.down(F.gelu(self.up(self.norm2(h))))


# %%
shape = {"batch": 4, "tokens": 128, "width": width, "hidden": 4 * width}
shape |= {"heads": 8, "kv_heads": 8}
block = Block(width, heads=8, hidden=4 * width)
x = torch.randn(4, 128, width, requires_grad=True)
counted = roofline.count(block, x, backward=True)
products, others = counted.contraction_flops, counted.other_flops
with reveal_prediction("not_products") as truth:
    print("the counter: ", units.si(products, "FLOP", digits=5), "in products")
    elsewhere = units.percent(others / (products + others), digits=2)
    print("             ", elsewhere, "of all FLOPs elsewhere")
    truth(others / (products + others))

# %%
with requires_solution("count_a_model"):
    yours = sum(count_block(shape | {"gated": False, "frozen": False}))
    print("your formula:", units.si(yours, "FLOP", digits=5))
    more = (counted.contraction_flops - yours) / (2 * 4 * 128 * 128 * width)
    print(f"the difference is {more:.2f} products q @ k.T")

# %% [markdown]
# The counter reports more than your formula, but not by mistake: the difference is exactly one product. Fused
# ("flash") attention never keeps the tokens × tokens matrix; the backward pass computes it again, from queries and
# keys. It does *more* FLOPs to move fewer bytes, and is faster, for the reason in section 5. (Where torch does not
# fuse attention, the difference is 0.)
#
# Counters deserve the same distrust as timers. Torch's own `FlopCounterMode` (2.15) forgets the groups of a convolution
# when it counts the gradient of its weights, so its count for a depth-wise layer's backward pass is many times too
# large. And some tools count a multiply-add as one operation. *Check a counter on something that you can count by
# hand*, once.

# %% [markdown]
# ## 7. Your operators under your roofs
#
# Below are seven operators with their work, as the library counts it. **Predict the fraction of light** (the shortest
# possible time over the measured one) of four of them: at 100 % an operator is on the roof, at 50 % it takes twice as
# long as it must. Then add one operator of your own to the dict.

# %%
predict("product", "Of the speed of light, a large product reaches", unit="%")
predict("small_product", "A product of 32 × 32 reaches", unit="%")
predict("relu", "A ReLU reaches", unit="%")
predict("gelu_by_hand", "GELU written by hand reaches", unit="%")

# %%
from edl_labs.bench import measure
from edl_labs.clock import clock_for
from edl_labs.device import best_device
from edl_labs.roofline import AboveRoof, place

# %%
with torch.device(best_device()):
    big = torch.randn(64 * width, width)
    a, v = torch.randn(4 * width, 4 * width), torch.randn(4 * width)
    tiny = torch.randn(32, 32)
    pictures, filters = torch.randn(8, 64, 56, 56), torch.randn(64, 64, 3, 3)

# %%
conv = work.conv2d(8, 64, 64, height=56, width=56, padding=1)
norm = work.norm(len(big), width, affine=False)
by_hand = work.elementwise(big.numel(), operations=5)
operators = {
    "product": (lambda: a @ a, work.gemm(4 * width, 4 * width, 4 * width)),
    "small product": (lambda: tiny @ tiny, work.gemm(32, 32, 32)),
    "matrix × vector": (lambda: a @ v, work.matvec(4 * width, 4 * width)),
    "conv 3×3": (lambda: F.conv2d(pictures, filters, padding=1), conv),
    "relu": (lambda: F.relu(big), work.elementwise(big.numel())),
    "layer norm": (lambda: F.layer_norm(big, (width,)), norm),
    "gelu by hand": (lambda: 0.5 * big * (1 + torch.erf(big / 2**0.5)), by_hand),
}


# %%
def measured_point(name, run, needed):
    """The operator's median time and interval, with its work."""
    clock = clock_for(best_device())
    time = measure(run, budget_s=measure_s, clock=clock, name=name)
    has_interval = time.low_s > 0 and time.high_s < math.inf
    interval = (time.low_s, time.high_s) if has_interval else ()
    level = machine.level_of(needed.moved_bytes).name
    return Point(name, needed, time.median_s, *interval, level=level)


# %%
points, of_light = [], {}
light_asked = ("product", "small_product", "relu", "gelu_by_hand")
with reveal_prediction(*light_asked) as truth:
    for name, (run, needed) in operators.items():
        try:
            found = place(machine, point := measured_point(name, run, needed))
            of_light[name.replace(" ", "_")] = found.fraction_of_light
            light = f"{found.fraction_of_light:.2g} of the speed of light"
            print(f"{name:<16} {light}, limited by {found.bound.where}")
            points.append(point)
        except AboveRoof as refused:
            print(refused)
    axes = draw_roofline(style.subplots(figsize=(9, 5.4))[1], machine, points)
    truth(**{one: of_light[one] for one in light_asked if one in of_light})

# %% [markdown]
# In the picture below, point at an operator to see its name and figures. **Predict:** a data-center GPU has tens of
# times the bandwidth of a laptop, and tens of times the arithmetic. How many of these operators would be limited by
# arithmetic on an A100, and how many on an H200? Choose the chip in the menu: the picture then shows where the same
# operators would be *at best*.

# %%
predict("on_a100", "Operators limited by arithmetic on an A100:", unit="operators")
predict("on_h200", "Operators limited by arithmetic on an H200:", unit="operators")

# %%
from edl_labs.ui.roofline_widget import RooflineExplorer

RooflineExplorer(machine, points, others=("A100", "H200"))


# %%
def limited_by_arithmetic(chip):
    """How many of the points are limited by arithmetic on another machine, at best."""
    other, count = roofline.Machine.of(chip), 0
    for point in points:
        count += roofline.bound(other, point.work).where.startswith("compute")
    return count


# %%
with reveal_prediction("on_a100", "on_h200") as truth:
    counts = {chip: limited_by_arithmetic(chip) for chip in ("A100", "H200")}
    print(counts)
    truth(on_a100=counts["A100"], on_h200=counts["H200"])

# %% [markdown]
# Each operator is compared with the nearest memory that its data fit in, because repeated calls find the data there. A
# point above its roof is rejected with a message that says which assumption failed: a roof is only a roof if nothing is
# above it.
#
# The larger a point, the more time it loses, and the more you would gain by fixing it. Look for three things. The
# small product takes no longer than a call itself, so neither roof limits it. GELU written by hand is five kernels
# where one would do, so most of its bytes need not be moved. And on a quiet machine the large product comes as close
# to the roof as anything gets. Why are ReLU and layer norm so far below their roof? Each call writes its result to
# *fresh* memory, which the system first has to find and clear. With `torch.relu_` or `out=` the same bytes are moved
# several times as fast. Try it: the roof was measured on memory that had already been allocated.
#
# One point comes from deck [003]: its max-pool took 28.8 ms on a CPU, longer than both convolutions of the profile, at
# about 1 GFLOP/s. An operator with 2 FLOP/B is never limited by arithmetic, and this one was not even limited by
# memory.

# %% [markdown] explain="why_not_on_the_roof"
# **Explain (read by your instructor).** Choose a point of your plot that lies clearly below its roof (a fraction of
# light below 0.7). Give its figures, and explain why it is not on the roof: which assumption of the model fails for it?
# Say which measurement would prove you wrong. Three to five sentences.

# %% [markdown]
# ## 8. Three ways to be slow
#
# Deck [002]'s recipe for the most likely limiter of a layer:
#
# 1. look up the number of SMs and the ridge of the GPU;
# 2. compute the layer's intensity;
# 3. estimate the number of thread blocks: is there enough parallelism?
#
# If there are too few blocks to give every SM one, the limit is **latency**. Otherwise it is **math** (the deck's word
# for what section 3 calls compute) above the ridge and **memory** below it.
#
# **Predict** for an A100 (108 SMs, 312 TFLOP/s, 2039 GB/s, tiles of 256 × 128): a product with m = n = 1024 and k =
# 65536 has 508 FLOP/B, far above the ridge of 153. What limits it?

# %%
three = ("latency", "math", "memory")
predict("long_k", "1024 × 1024 × 65536 is limited by", choices=three)

# %% [markdown]
# `diagnose(layer, machine)` returns `"latency"`, `"math"` or `"memory"`. A layer is an `op` as in section 2, of one
# of these four kinds. A `"gemm"` (m × n) or `"linear"` (batch × outputs) has a block for each tile of its result,
# `tile_m` rows by `tile_n` columns. A `"relu"` or `"layer_norm"` has a block for every `elements_per_block` elements;
# the last block may not be full. A machine has `tile_m`, `tile_n`, `elements_per_block`, `sms`, `peak_flop_per_s` and
# `bandwidth_byte_per_s` as plain numbers. Guessing earns nothing: marks are corrected for chance. You may use
# `work_of`; if yours is wrong, a correct one replaces it when this exercise is graded.


# %% solve="diagnose"
def diagnose(layer, machine):
    """What limits `layer` on `machine`: "latency", "math" or "memory"."""
    ### BEGIN SOLUTION
    if layer["kind"] in ("gemm", "linear"):
        tall, wide = ("m", "n") if layer["kind"] == "gemm" else ("batch", "outputs")
        blocks = -(-layer[tall] // machine["tile_m"]) * -(
            -layer[wide] // machine["tile_n"]
        )
    else:
        count = (
            layer["elements"]
            if layer["kind"] == "relu"
            else layer["rows"] * layer["features"]
        )
        blocks = -(-count // machine["elements_per_block"])
    if blocks < machine["sms"]:
        return "latency"
    flop, moved_bytes = work_of(layer)
    ridge = machine["peak_flop_per_s"] / machine["bandwidth_byte_per_s"]
    return "math" if flop / moved_bytes > ridge else "memory"
    ### END SOLUTION


# %% check="diagnose"
check("diagnose")

# %%
a100 = {"sms": 108, "peak_flop_per_s": 312e12, "bandwidth_byte_per_s": 2039e9}
a100 |= {"tile_m": 256, "tile_n": 128, "elements_per_block": 1024}
with requires_solution("diagnose"), reveal_prediction("long_k") as truth:
    limits, shapes = {}, ((1024, 1024, 65536), (8192, 128, 8192), (8192, 8192, 128))
    for m, n, k in (*shapes, (8192, 8192, 8192)):
        op = {"kind": "gemm", "m": m, "n": n, "k": k, "itemsize": 2}
        flop, moved_bytes = work_of(op)
        limits[m, n, k] = diagnose(op, a100)
        told = f"{flop / moved_bytes:7.1f} FLOP/B, limited by {limits[m, n, k]}"
        print(f"{m} × {n} × {k}: {told}")
    truth(limits[shapes[0]])

# %% [markdown]
# 1024 × 1024 is 32 tiles: 76 of 108 SMs have nothing to do, and the roofline does not show that. The deck's own
# example, 8192 × 128 × 8192 with 124.1 FLOP/B, is not "memory-bound" on this machine either: it has 32 tiles, too. The
# same three sizes in a different order, 8192 × 8192 × 128, fill the machine. (Libraries know this, and cut the sum over
# k into pieces that run in parallel.)
#
# Where arithmetic is the limit, deck [004] looks at the instructions. Vector instructions and fused multiply-adds do
# more operations per instruction. An unrolled loop spends fewer instructions on counters and branches, and has several
# independent operations under way at once. And the *mix* matters: an SM's units for addresses, exponentials and
# multiply-adds work in parallel, and the busiest unit sets the time. Compilers do most of this; a profile of a single
# kernel (lab05) shows what is left.

# %% [markdown]
# ## 9. A machine that you do not have
#
# A roofline needs only two numbers about a machine, so you can draw it for a machine that you have never seen.
# `edl_labs.predict` goes through a model on your laptop, operation by operation, and adds what this lab leaves out:
# launches, tiles, power. According to their datasheets, an H100 computes 15 times as fast as a T4 in FP16, and its
# memory is 10.5 times as fast.
#
# **Predict:** three linear layers of 1024, each with a ReLU, process a batch of 65 536. How many times as fast as the
# T4 is the H100?

# %%
predict("h100_faster", "The H100 is faster by a factor of", unit="times")

# %%
from edl_labs.predict import compare_machines

pairs = [(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(3)]
model = nn.Sequential(*(part for pair in pairs for part in pair))
with reveal_prediction("h100_faster") as truth:
    batch = torch.empty(65_536, 1024, device="meta")
    both = compare_machines(model.eval(), batch, ["T4", "H100"], dtype="fp16")
    print(f"modelled:\n{both!r}")
    t4, h100 = both.predictions
    truth(h100_faster=t4.step_s / h100.step_s)

# %% [markdown]
# If the ratio is larger than both datasheet ratios, look at what limits each chip: a T4 is limited to 70 W, at which
# its tensor cores sustain 24 of their 65 TFLOP/s. Now try a batch of 64 (`device="meta"` costs no memory): which roof
# is it under then?

# %% [markdown]
# ## 10. How much could be gained?
#
# Deck [004] advises you to keep asking: "Is it worth it?" Decks [001] and [002] show where the time of a transformer in
# PyTorch goes:
#
# | operator class | % of FLOPs | % of run time |
# |---|---|---|
# | tensor contraction | 99.80 | 61.0 |
# | statistical normalization | 0.17 | 25.5 |
# | element-wise | 0.03 | 13.5 |
#
# **Predict:** somebody sells you infinitely fast tensor cores. How much faster does training become? And how much
# faster if normalization and elementwise work cost nothing instead?

# %%
predict("free_tensor", "With free contractions, training is faster by", unit="times")
predict("free_rest", "With the rest free, training is faster by", unit="times")

# %% [markdown]
# `speedup(classes, faster)` returns the old time divided by the new time. `classes` maps a name to `{"flop_share": ...,
# "time_share": ...}`, with shares that add up to 1. `faster` maps some of the names to factors: 2.0 is twice as fast,
# `math.inf` is free, 0.5 is half as fast.


# %% solve="amdahl"
def speedup(classes, faster):
    """Old time over new time, if the classes in `faster` speed up by its factors."""
    ### BEGIN SOLUTION
    return 1 / sum(
        row["time_share"] / faster.get(name, 1.0) for name, row in classes.items()
    )
    ### END SOLUTION


# %% check="amdahl"
check("amdahl")

# %%
slide = {
    "contraction": (0.9980, 0.610),
    "normalization": (0.0017, 0.255),
    "element-wise": (0.0003, 0.135),
}
classes = {
    name: {"flop_share": flop, "time_share": time}
    for name, (flop, time) in slide.items()
}

# %%
with (
    requires_solution("amdahl"),
    reveal_prediction("free_tensor", "free_rest") as truth,
):
    gains = []
    for free in (["contraction"], ["normalization", "element-wise"]):
        gains.append(speedup(classes, dict.fromkeys(free, math.inf)))
        print(f"free {' and '.join(free)}: {gains[-1]:.2f} times faster")
    print("the rest can be fused away, and that needs no new hardware")
    truth(free_tensor=gains[0], free_rest=gains[1])

# %%
rate = {name: flop / time for name, (flop, time) in slide.items()}
for name in ("normalization", "element-wise"):
    slower = rate["contraction"] / rate[name]
    print(f"{name} runs at 1 / {slower:.0f} of the FLOP/s of contractions")

# %% [markdown]
# Contractions do 99.8 % of the operations. The FLOP/s of the rest are hundreds of times lower, and you know why: look
# at its intensity in section 2.

# %% [markdown]
# ## 11. The network is one more roof
#
# > **node**: one computer of a cluster. **bucket**: gradients that are sent together, in one message.
#
# Train on P nodes by splitting the batch: each node computes its share of the examples, and then all nodes add up their
# gradients. Deck [004] treats the network like memory: a node with 6 TFLOP/s and a link of 6 GB/s must do 1000 FLOPs
# for every byte that it sends. For the update of a layer's weights with two nodes, a global batch of N and FP32, it
# finds N / 4 FLOPs per byte.
#
# **Predict:** how large must the batch be to hide the sending? And with eight nodes?

# %%
predict("batch_of_two", "Two nodes hide the sending from a batch of", unit="examples")
predict("batch_of_eight", "Eight nodes hide it from a batch of", unit="examples")

# %% [markdown]
# A *ring* is the usual way to sum gradients across nodes. The gradients are cut into P parts. In each of P − 1 rounds,
# a node sends one part to its neighbour, which adds its own. P − 1 more rounds pass the sums on. Write
#
# * `network_intensity(batch, nodes=..., itemsize=..., behind=...)`: FLOPs of one node per byte that it sends. With
#   `behind="weight gradient"`, only the product that computes a weight's gradient can hide the sending (deck [004]'s
#   case). With `behind="backward"`, the whole backward pass can hide it; it also computes the gradient of the layer's
#   input.
# * `step_s(batch, nodes=..., weights=..., itemsize=..., node_flop_per_s=..., link_byte_per_s=..., buckets=...)`:
#   seconds of a training step on dense layers with that many weights, at 2 FLOPs per weight and example for each
#   product. Nothing can be sent during the forward pass, and a single node sends nothing (only `step_s` is called with
#   one node).
#
# What can be sent when? A gradient must be computed before it can be sent. Frameworks therefore cut the gradients into
# `buckets` of equal size, which the backward pass finishes one after another, at a steady pace. Each is sent as soon as
# it is finished and the link is free. With one bucket, all of the backward pass comes first, then all of the sending.
# This is a step with four buckets, and a link that is faster than the arithmetic:
#
# ```
# node   | forward | 1111 | 2222 | 3333 | 4444 |
# link                    | 11   | 22   | 33   | 44 |
# ```
#
# **Predict:** draw the same for a link that is slower than the arithmetic. When does the link begin to send, and when
# does it pause?

# %%
predict("link_pauses", "A slower link pauses", choices=("never", "between buckets"))

# %% [markdown]
# `batch` is always the global batch.


# %% solve="network_roofline"
def network_intensity(batch, *, nodes, itemsize, behind):
    """FLOPs that one node does, per byte that it sends around a ring."""
    ### BEGIN SOLUTION
    products = {"weight gradient": 1, "backward": 2}[behind]
    return products * 2 * (batch / nodes) / (2 * (nodes - 1) / nodes * itemsize)
    ### END SOLUTION


def step_s(
    batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets
):
    """Seconds of a training step whose gradients are summed around a ring."""
    ### BEGIN SOLUTION
    forward_s = 2 * weights * batch / nodes / node_flop_per_s
    ring_s = 2 * (nodes - 1) / nodes * itemsize * weights / link_byte_per_s
    # The longer of the two never pauses; one bucket of the shorter comes before it
    # begins, or after it ends.
    shorter_s, longer_s = sorted((2 * forward_s, ring_s))
    return forward_s + longer_s + shorter_s / buckets
    ### END SOLUTION


# %% check="network_roofline"
check("network_roofline")

# %%
with reveal_prediction("link_pauses") as truth:
    print("it begins when the first bucket is ready, and then always has one waiting")
    truth("never")

# %%
links = {"NVLINK": 40e9, "56 Gbit/s InfiniBand": 6.8e9, "the slide's": 6e9}
links |= {"PCIe ×8": 5e9, "10 Gbit/s Ethernet": 1e9}
cases = [(2, "weight gradient"), (8, "weight gradient"), (8, "backward")]
print("smallest hiding batch:   2 nodes  8 nodes  8 nodes, whole backward pass")
asked_nodes = ("batch_of_two", "batch_of_eight")
with requires_solution("network_roofline"), reveal_prediction(*asked_nodes) as truth:
    for name, link_byte_per_s in links.items():
        ridge, smallest = 6e12 / link_byte_per_s, []
        for nodes, behind in cases:
            of_one = network_intensity(1, nodes=nodes, itemsize=4, behind=behind)
            smallest.append(f"{ridge / of_one:9.0f}")
        print(f"{name:>22} ", *smallest, sep="")
        if name == "the slide's":
            truth(**dict(zip(asked_nodes, map(float, smallest), strict=False)))

# %% [markdown]
# The intensity grows with the batch, so a large enough batch hides any link. With more nodes the batch must be larger,
# because each node has a smaller share to compute while it sends nearly twice as many bytes. If the whole backward pass
# can hide the sending, half of that batch is enough.
#
# The slide adds: "wait, we violated a modeling assumption". The update must be computed before it is sent, so nothing
# overlaps unless the framework arranges it. How many buckets does that take?

# %%
cluster = {"node_flop_per_s": 6e12, "link_byte_per_s": 6e9}
job = {"weights": 10**8, "itemsize": 4}
with requires_solution("network_roofline"):
    for nodes in (2, 5, 8):
        steps = [
            units.seconds(step_s(8000, nodes=nodes, buckets=count, **job, **cluster))
            for count in (1, 2, 4, 16, 256)
        ]
        print(
            f"modelled, {nodes} nodes:",
            ", ".join(steps),
            "with 1, 2, 4, 16, 256 buckets",
        )

# %% [markdown]
# Two buckets hide half of what can be hidden at all, and sixteen nearly all of it. Sixteen is a usual number: torch's
# `DistributedDataParallel` cuts 400 MB of gradients into buckets of 25 MiB. A thousand would hardly gain more, and each
# of their messages would pay the link's latency, which this model leaves out.

# %% [markdown]
# ## 12. Practice: how large must a batch be?
#
# Sections 12 and 13 are practice: they are checked like all the others, but carry no points.
#
# According to deck [004], a layer with N × N weights and a batch of M does 2N²M operations on 4(N² + 2NM) bytes. At M =
# 1 every weight is fetched for one multiply-add; a larger batch uses it again and again.
#
# **Predict:** on the GPU of 2015 (ridge 20 FLOP/B), what is the smallest M at which a layer with N = 1024 computes at
# full speed? The slide says "about 64". And is there such a batch for every N?

# %%
predict("batch_1024", "N = 1024 is compute-bound from a batch of", unit="examples")
for_which = ("for each N", "not for each N")
predict("always", "A batch that is large enough exists", choices=for_which)

# %% [markdown]
# Write, for a layer with any number of `inputs` and `outputs` on a machine with any `ridge` and `itemsize`:
#
# * `batch_at_ridge(inputs, outputs, ridge=..., itemsize=...)`: the batch (not rounded) at which its intensity equals
#   the ridge; `math.inf` when no batch is large enough;
# * `width_limit(ridge=..., itemsize=...)`: the largest N for which a square layer stays below the ridge at any batch
#   size.


# %% solve="minibatch_crossover"
def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    """The batch at which the intensity equals `ridge`; math.inf if there is none."""
    ### BEGIN SOLUTION
    # 2 K N M / (b (K N + (K + N) M)) = ridge, solved for M
    gain = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
    return ridge * itemsize * inputs * outputs / gain if gain > 0 else math.inf
    ### END SOLUTION


def width_limit(*, ridge, itemsize):
    """The width of a square layer at and below which no batch reaches `ridge`."""
    ### BEGIN SOLUTION
    return ridge * itemsize
    ### END SOLUTION


# %% check="minibatch_crossover"
check("minibatch_crossover")

# %%
with (
    requires_solution("minibatch_crossover"),
    reveal_prediction("batch_1024", "always") as truth,
):
    print("no batch helps up to N =", width_limit(ridge=20, itemsize=4))
    widths = (64, 100, 213, 512, 1024, 2048, 10**6)
    needed = {n: batch_at_ridge(n, n, ridge=20, itemsize=4) for n in widths}
    for n, batch in needed.items():
        print(f"N = {n:>7}: compute-bound from M = {batch:.1f}")
    has_none = any(math.isinf(batch) for batch in needed.values())
    truth(batch_1024=needed[1024], always=for_which[has_none])

# %%
figure, axes = style.subplots(figsize=(9, 3.6))
batches = [2**power for power in range(14)]
for n, line in zip((64, 213, 1024), ("o-", "s--", "^:"), strict=True):
    intensity = [2 * n * m / (4 * (n + 2 * m)) for m in batches]
    axes.loglog(batches, intensity, line, label=f"N = {n}")
axes.axhline(20, color=style.GREY, linestyle="-.", label="ridge of the 2015 GPU")
axes.set(
    xlabel="minibatch M",
    ylabel="FLOP/B",
    title="Intensity of an N × N layer (computed)",
)
legend = axes.legend(frameon=False)

# %% [markdown]
# At N = 1024 the roofs meet at M = 43, not 64; the 64 of the slide belongs to N = 213. For wide layers, M tends to
# 40. And a layer of N = 64 always stays below the ridge. With more and more examples, the weights no longer matter,
# but inputs and results do, and the intensity tends to N / 4. So *not every layer can be saved by a larger batch*,
# and narrow layers are the first that cannot: that is why fusing them matters.
#
# Deck [002] has a guideline for the A100: batch and layer sizes above 128, "to avoid being limited by memory
# bandwidth", and if one is small, multiples of "at least 64 and ideally 256" (lab01's tiles are 256 × 128). The A100's
# ridge in fp16 is 153 FLOP/B. At a batch of 128, even an infinitely wide layer has only 128 FLOP/B, which allows 84 %
# of the ceiling.
#
# Throughput alone cannot tell you the best batch, though: a larger batch never lowers it, so you would always take
# the largest. Deck [004] argues with the *cycle time*: research is guided exploration, so the wall-clock time of an
# *experiment* counts, and it "falls, then rises again with M". Suppose that a model must see 1 + M / 200 times as
# many examples when its batch is M (with a small batch, it learns more from each example). **Predict** the best M for
# N = 1024.

# %%
predict("best_batch", "The experiment is shortest with a batch of", unit="examples")

# %%
with requires_solution("minibatch_crossover"), reveal_prediction("best_batch") as truth:
    step_floor = batch_at_ridge(
        1024, 1024, ridge=20, itemsize=4
    )  # below it a step takes as long as its weights do
    sizes = (8, 16, 32, 43, 64, 128, 256, 512)
    wall = {m: (1 + m / 200) / m * max(step_floor, m) for m in sizes}
    for m in sizes:
        print(
            f"M = {m:>5}: {wall[m] / min(wall.values()):5.2f} "
            "times the shortest experiment"
        )
    truth(min(wall, key=wall.get))

# %% [markdown]
# Below the ridge the extra examples cost no time; above it, each example costs its full time, and the model learns less
# from it. As long as arithmetic is not the limit, deck [004] calls a larger batch a free lunch. So is a larger model if
# launches or the loader are the limit. (If the time goes into reading weights, more weights take longer.) With a number
# other than 200, the right side of the curve is flatter or steeper, but the left side stays the same.

# %% [markdown]
# ## 13. Practice: strong or weak
#
# *Strong scaling* runs the same batch on more nodes, to finish a step sooner. *Weak scaling* gives each node the same
# share as before, so the batch grows. Deck [004] advises weak scaling where it is possible: strong scaling is hard.
#
# **Predict:** a step's batch is 8000 examples, on nodes of 6 TFLOP/s with links of 6 GB/s, and batches up to 32 000
# train well. Gradients are sent in 16 buckets. How many nodes can you use with an efficiency of at least 70 %, with
# strong and with weak scaling?

# %%
predict("strongly", "With strong scaling, you would go up to", unit="nodes")
predict("weakly", "With weak scaling, you would go up to", unit="nodes")

# %% [markdown]
# `plan(job, cluster)` returns `(scaling, nodes)`. A job has `weights`, `itemsize`, `buckets`, `batch` (what one node
# trains with today), `largest_batch` (beyond it the model no longer trains well) and `least_efficiency`. A cluster has
# `nodes`, `node_flop_per_s` and `link_byte_per_s`. A step takes as long as `step_s` says. *Efficiency* is the examples
# per second per node on P nodes, divided by the examples per second of a single node.
#
# Find the largest P with at least that efficiency, for strong scaling (batch as it is) and for weak scaling (batch × P;
# P is not allowed when batch × P exceeds `largest_batch`). Return the kind that reaches more nodes, `"weak"` if they
# are equal, and `("none", 1)` if neither gets beyond one node. You may use `step_s`; if yours is wrong, a correct one
# replaces it when this exercise is graded.


# %% solve="scaling_plan"
def plan(job, cluster):
    """(scaling, nodes), where the scaling is "strong", "weak" or "none"."""

    ### BEGIN SOLUTION
    names = ("weights", "itemsize", "buckets", "node_flop_per_s", "link_byte_per_s")
    given = {name: (job | cluster)[name] for name in names}

    def rate_per_node(batch, nodes):
        return batch / nodes / step_s(batch, nodes=nodes, **given)

    def reach(batch_of):
        enough = job["least_efficiency"] * rate_per_node(job["batch"], 1)
        counts = range(2, cluster["nodes"] + 1)
        allowed = [p for p in counts if batch_of(p) <= job["largest_batch"]]
        return max(
            [1, *(p for p in allowed if rate_per_node(batch_of(p), p) >= enough)]
        )

    strong, weak = reach(lambda p: job["batch"]), reach(lambda p: job["batch"] * p)
    if strong == weak == 1:
        return "none", 1
    return ("weak", weak) if weak >= strong else ("strong", strong)
    ### END SOLUTION


# %% check="scaling_plan"
check("scaling_plan")


# %%
def efficiency(batch, nodes, *, buckets):
    """Examples per second per node, relative to 8000 examples on one node."""
    alone_s = step_s(8000, nodes=1, buckets=buckets, **job, **cluster)
    together_s = step_s(batch, nodes=nodes, buckets=buckets, **job, **cluster)
    return batch / together_s / nodes / (8000 / alone_s)


fleet = range(1, 25)  # nodes

# %%
with (
    requires_solution("scaling_plan"),
    reveal_prediction("strongly", "weakly") as truth,
):
    weak = [efficiency(8000 * n, n, buckets=16) for n in fleet]
    strong, in_one = ([efficiency(8000, n, buckets=b) for n in fleet] for b in (16, 1))
    figure, axes = style.subplots(figsize=(9, 3.6))
    axes.plot(fleet, weak, "o-", label="weak")
    axes.plot(fleet, strong, "s--", label="strong")
    axes.plot(fleet, in_one, "^:", label="strong, one bucket")
    axes.axhline(0.7, color=style.GREY, linestyle="-.")
    axes.set(xlabel="nodes", ylabel="efficiency", ylim=(0, 1.05))
    axes.set_title("8000 examples on one node (modelled)")
    legend = axes.legend(frameon=False)
    truth(strongly=sum(one >= 0.7 for one in strong), weakly=32_000 / 8000)

# %% [markdown]
# The next cell prints your plan for two limits on the batch size:

# %%
with requires_solution("scaling_plan"):
    limits = {"batch": 8000, "least_efficiency": 0.7, "buckets": 16}
    for largest_batch in (32_000, 100_000):
        print(
            largest_batch,
            plan(
                job | limits | {"largest_batch": largest_batch}, cluster | {"nodes": 24}
            ),
        )

# %% [markdown]
# Weak scaling stays at 99 % here for as long as the batch may grow: four nodes for 32 000 examples, twelve for 100 000.
# With strong scaling, up to five nodes hide all of the sending except for the last bucket, and the efficiency is 96 %.
# With seven it is 73 %, and it falls further with each node: a node's share shrinks while the bytes that it sends grow.
# With one bucket, a third is already lost with four nodes.
#
# Two levers of deck [004] each change one number here. A second link into every node (*dual rail*: 12 GB/s) takes
# strong scaling from seven nodes to thirteen. And nodes that reach only half of their peak (the deck says to "prorate"
# the peak if a node's own roofline demands it) scale to thirteen, too: a slow node is easy to keep busy, which is no
# merit.
#
# This plan leaves one thing out: a smaller share has a lower intensity *inside* the node, too. For a layer of 1024 ×
# 1024 and 64 examples in FP32, halving the batch takes it from 28.4 to 15.1 FLOP/B, below the 2015 GPU's ridge of 20
# FLOP/B. The deck's order is right: first each node's own roofline, then the network's.

# %% [markdown]
# ## Where you are

# %%
Progress("lab02_roofline")
