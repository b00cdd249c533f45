# %% [markdown]
# # Kernels: what a warp does
#
# Two kernels do the same additions on the same bytes, yet one takes eight times as long. The formulas do not say why:
# the reason is *which thread touches which address when*. A profiler shows it only as "sectors per request 32". Here a
# modelled machine records every access of every thread, so you can see and count them on a laptop, and the judge counts
# them too.
#
# After this lab you can
#
# * count what divergent paths cost a warp;
# * write a kernel with shared memory and barriers, and say what its warps request from memory;
# * choose tiles, and know when splitting a sum pays off;
# * say how much the order of additions changes a sum, and write a reduction whose bits never change;
# * in the practice, price the first layers of a network in seconds instead of FLOPs.
#
# **About 127 minutes (estimated)**. The practice section carries no points; it takes another 45 minutes (estimated).
#
# | exercise | `warp_paths` | `coalesced` | `tile_choice` | `order_matters` |
# |---|---|---|---|---|
# | section | 1 | 2 | 3 | 4 |
# | minutes | 23 | 31 | 30 | 43 |
#
# | practice | `first_layers` |
# |---|---|
# | minutes | 45 |
#
# *Write your prediction down* before you run the next cell. If there is a box, enter a number, with or without its
# unit, and press Enter. The result then appears next to it. Lecture slides are quoted by deck: [001] course
# introduction, [002] software perspective, [004] deep learning, hopefully faster. `hint("coalesced")` gives the hints
# of an exercise, one at a time.
#
# A check that fails shows the first wrong case and what your code returned. `case("coalesced")` gives that case's
# inputs as Python values, so that you can try your code on them.

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
side = 128

# %% given
from edl_labs.plots import style
from edl_labs.units import seconds
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.warp import VirtualWarp

# %%
Progress("lab08_kernels")

# %% [markdown]
# ## 1. One function, many threads
#
# A *kernel* is a function that every thread runs. Threads are grouped in *blocks*, blocks form a *grid*, and a thread
# can ask for its own index. Within a block, 32 consecutive threads form a *warp*. Deck [001]: "a warp executes one
# instruction at a time: in case of branching, all paths need to be taken".
#
# Here a kernel's first parameter, `cuda`, stands for the current thread and uses the same names as Numba's `cuda`.
# With a real GPU you would import `cuda` instead.


# %% given
def scale_or_shift(cuda, src, dst):
    """dst[i] = 2 * src[i] for even i, and src[i] + 1 for odd i."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i % 2 == 0:
        dst[i] = 2 * src[i]
    else:
        dst[i] = src[i] + 1


# %% [markdown]
# Each side of the branch has three instructions that the machine records: load, compute, store. (Index arithmetic is
# not recorded.) **Predict:** how many instructions does a warp issue for its 32 threads?

# %%
predict("issued", "A warp issues", unit="instructions")

# %%
with reveal_prediction("issued") as truth:
    gpu = VirtualWarp()
    src, dst = gpu.array("src", 64), gpu.array("dst", 64)
    gpu.launch(scale_or_shift, src, dst, grid=1, block=64)
    ran = gpu.replay()
    print(f"modelled: {ran.issued_by_warp} by the warps, {ran.active_share:.0%} active")
    truth(ran.issued_by_warp[0])

# %% [markdown]
# Half of the lanes wait while the others work: that is *divergence*. If the first 32 elements were scaled and the last
# 32 shifted, no warp would diverge.
#
# Now generalize this to any paths. Each element `i` of a list belongs to one thread, in blocks of `block` threads.
# `paths[i]` is the name of the path that this thread takes, and `lengths[name]` is the path's number of instructions. A
# warp issues, exactly once, each path that at least one of its threads takes. The last warp of a block may have fewer
# than 32 threads. Write
#
# * `issued(paths, lengths, block)` → the total number of instructions that the warps issue;
# * `sorted_paths(paths, lengths, block)` → an order of the elements, as a list of their numbers, in which the warps
#   issue the fewest instructions. Here the block size and the number of elements of each path are multiples of 32.


# %% solve="warp_paths"
def issued(paths, lengths, block):
    """Instructions that all warps issue."""
    ### BEGIN SOLUTION
    total = 0
    for first in range(0, len(paths), block):
        mine = paths[first : first + block]
        for lane in range(0, len(mine), 32):
            total += sum(lengths[name] for name in set(mine[lane : lane + 32]))
    return total
    ### END SOLUTION


def sorted_paths(paths, lengths, block):
    """The numbers of the elements, in the order with the fewest instructions."""
    ### BEGIN SOLUTION
    return sorted(range(len(paths)), key=lambda i: paths[i])
    ### END SOLUTION


# %% check="warp_paths"
check("warp_paths")

# %% [markdown]
# ## 2. What a warp requests from memory
#
# When a warp loads, its 32 addresses make one *request*. Memory answers with whole *sectors* of 32 bytes, four of which
# make a *line*. Deck [004] asks for "coalesced access on GPU": neighbouring threads of a warp touch neighbouring
# addresses.
#
# **Predict** the number of sectors in one request, for 4-byte elements. Thread `x` loads `src[x]`, or `src[32 * x]`, or
# `src[x + 1]`; or all threads load `src[0]`.

# %%
predict("row", "src[x] takes", unit="sectors")
predict("column", "src[32 * x] takes", unit="sectors")
predict("same", "src[0] takes", unit="sectors")
predict("shifted", "src[x + 1] takes", unit="sectors")


# %%
def four_loads(cuda, src):
    x = cuda.threadIdx.x
    src[x]
    src[32 * x]
    src[0]
    src[x + 1]


with reveal_prediction("row", "column", "same", "shifted") as truth:
    gpu = VirtualWarp()
    gpu.launch(four_loads, gpu.array("src", 1024), grid=1, block=32)
    ran = gpu.replay()
    asked = [one.sectors for one in ran.requests]
    truth(row=asked[0], column=asked[1], same=asked[2], shifted=asked[3])
    axes = ran.plot(style.subplots(figsize=(9, 3.4))[1])

# %% [markdown]
# Memory moves whole sectors, even the bytes that the warp does not use. In the picture, each box is a line with its
# four sectors. The blue part of a sector is the share of its bytes that the warp uses.
#
# *Shared memory* belongs to a block, and a thread may index it almost freely. It has 32 *banks*, each 4 bytes wide;
# word `w` is in bank `w % 32`. Different words of one bank are read one after the other (in *wavefronts*), which is
# called a *bank conflict*. For elements of 8 bytes, each half of a warp (16 threads) is counted separately. A thread
# may read what other threads wrote only after `cuda.syncthreads()`, when all threads of the block have reached it.
#
# A transposition reads rows and writes columns, so one of the two is not coalesced, unless a block copies a *tile* into
# shared memory and transposes it there. Write `transpose(gpu, src, dst)`: launch your own kernel so that `dst[x, y] ==
# src[y, x]`. The numbers of rows and columns are multiples of 16; `src.shape` is `(rows, columns)`; elements have 4 or
# 8 bytes.
#
# | call | does |
# |---|---|
# | `gpu.launch(kernel, src, dst, grid=(4, 2), block=(32, 8))` | 4 × 2 blocks, each of 32 × 8 threads (at most 1024) |
# | `cuda.threadIdx.x`, `.y`; `cuda.blockIdx.x`, `.y` | which thread, which block; 32 threads along x form a warp |
# | `cuda.shared.array((32, 32), src.dtype)` | the block's own memory; a shape is a number or a tuple |
# | `tile[y, x] = src[y, x]` | a load and a store of one element |
# | `cuda.syncthreads()` | wait for the whole block; call it where every thread reaches it |
#
# In a block that is 16 wide, a warp is two rows of 16. A loaded value is known only in the replay: you can store it and
# compute with it, but not branch on it. You earn half of the points if every element is right, there are no races, and
# the kernel moves at most 5 % more sectors than needed. For the other half there must be no bank conflicts either.


# %% solve="coalesced"
def transpose(gpu, src, dst):
    """dst becomes src with rows and columns swapped."""
    ### BEGIN SOLUTION
    rows, columns = src.shape

    def turn(cuda, src, dst):
        tile = cuda.shared.array((32, 33), src.dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
        for row in range(y, 32, 8):
            if top + row < rows and left + x < columns:
                tile[row, x] = src[top + row, left + x]
        cuda.syncthreads()
        for row in range(y, 32, 8):
            if left + row < columns and top + x < rows:
                dst[left + row, top + x] = tile[x, row]

    grid = (-(-columns // 32), -(-rows // 32))
    gpu.launch(turn, src, dst, grid=grid, block=(32, 8))
    ### END SOLUTION


# %% check="coalesced"
check("coalesced")


# %%
def straight(cuda, src, dst):
    """The short kernel: no tile, no barrier."""
    x, y = cuda.grid(2)
    dst[x, y] = src[y, x]


def transposed(how):
    gpu = VirtualWarp()
    src, dst = gpu.array("src", (side, side)), gpu.array("dst", (side, side))
    how(gpu, src, dst)
    return gpu.replay()


# %% [markdown]
# `straight`, in the cell above, is a short kernel without a tile. **Predict:** on a GPU that moves 2 TB/s, your
# kernel and the short one each transpose a matrix of 8192 × 8192 in fp32, limited only by the sectors that they move.
# How many times as long as yours does the short kernel take?

# %%
predict("longer", "The short kernel takes", unit="times")

# %%
with requires_solution("coalesced"), reveal_prediction("longer") as truth:
    blocks = {"grid": (side // 32, side // 8), "block": (32, 8)}
    short = transposed(lambda gpu, *both: gpu.launch(straight, *both, **blocks))
    tiled = transposed(transpose)
    moved = 2 * 4 * 8192**2
    for name, run in (("short", short), ("yours", tiled)):
        share = 32 * run.sectors / (2 * 4 * side**2)
        print(
            f"modelled, {name}: {run.sectors} sectors, {seconds(share * moved / 2e12)}"
        )
        print(f"  {run.accesses[0]}")
        print(f"  {run.accesses[-1]}")
        axes = style.subplots(figsize=(9, 3.4))[1]
        run.plot(axes, title=f"The first warp's requests: {name}")
    truth(short.sectors / tiled.sectors)

# %% [markdown]
# The short kernel reads whole rows, but it writes columns. Real caches reduce that cost, since neighbouring warps soon
# need the other bytes of these sectors. But if all words of a warp are in one bank, each request takes 32 wavefronts,
# and no cache reduces that.
#
# Your tile goes from memory into registers, and from there into shared memory. Deck [001] mentions that recent chips
# can copy without the threads. Since Ampere, `cp.async` writes directly to shared memory while the thread continues.
# Since Hopper, one thread requests a whole tile from the *Tensor Memory Accelerator* (TMA), and a block may read the
# shared memory of its neighbours in a *cluster*. A barrier signals that the bytes have arrived. With two tiles in
# shared memory, the next tile is loaded while the current one is computed: this is prefetching within a kernel.

# %% [markdown]
# ## 3. Blocks on multiprocessors: which tile?
#
# Blocks run on *multiprocessors* (SMs). An A100 has 108 of them. A kernel of 27 blocks leaves three quarters of them
# idle, unless kernels of other *streams* run at the same time.
#
# **Predict:** take four independent kernels of 27 blocks. A block takes 100 µs and fills an SM; launching a kernel
# takes the host 5 µs. How long do the four kernels take in one stream, and in four streams? And in four streams, if
# each had 108 blocks?

# %%
predict("one_stream", "With 27 blocks each, one stream takes", unit="µs")
predict("four_streams", "With 27 blocks each, four streams take", unit="µs")
predict("full_four", "With 108 blocks each, four streams take", unit="µs")


# %%
def four_kernels(blocks, streams):
    gpu = VirtualGPU(VirtualMachine.of("A100-80GB").warm())
    many = [gpu.Stream() for _ in range(streams)]
    for i in range(4):
        work = {"duration_s": 100e-6, "blocks": blocks, "stream": many[i % streams]}
        gpu.launch(f"kernel {i}", **work)
    gpu.synchronize()
    return gpu


# %%
with reveal_prediction("one_stream", "four_streams", "full_four") as truth:
    runs = [four_kernels(27, 1), four_kernels(27, 4), four_kernels(108, 4)]
    took = [run.now_s() for run in runs]
    print("modelled:", ", ".join(map(seconds, took)))
    truth(one_stream=took[0], four_streams=took[1], full_four=took[2])
    axes = style.subplots(figsize=(9, 2.6))[1]
    runs[1].timeline.plot(axes, title="27 blocks each, four streams (modelled)")

# %% [markdown]
# (Launches are orange; green is the host's own work, here the call that then waits.) A matrix product can be cut so
# that it fills the chip on its own. Its output is cut into *tiles*, one for each block. Deck [002]: "Larger tiles run
# more efficiently", because each loaded element is used more often. But there are fewer of the larger tiles, and the
# last *wave* (the blocks that run at the same time) may be nearly empty. On an A100, 108 tiles of 256 × 128 take one
# wave, but 109 tiles take two, which together do only 50.5 % of the work that two waves could do.
#
# If an output is small and `k` is large, even small tiles leave SMs idle. *Split-K* gives each tile to several blocks,
# each of which sums a part of `k`; then a second kernel adds up their sums.
#
# Write `product_s(m, n, k, tile, split, chip)` → seconds, and `best_tile(m, n, k, chip)` → `(tile, split)`, the fastest
# pair of all `chip["tiles"]` and `chip["splits"]` (any of them if several are equally fast). Here `tile` is the tile's
# number in the list.
#
# * An output tile of `tile["m"]` × `tile["n"]` is computed by one block, or by `split` blocks. A partial tile at the
#   edge takes as long as a whole one.
# * A block sums its part of `k`, which is `k / split` rounded up. Each step of `k` takes 2 · `tile["m"]` · `tile["n"]`
#   FLOP. An SM does `chip["sm_flop_per_s"]`, and a tile reaches the share `tile["efficiency"]` of that rate.
# * An SM holds `tile["per_sm"]` blocks at a time, which share its rate. A wave has as many blocks as all
#   `chip["sm_count"]` SMs hold, and takes as long as one of its blocks does on a full SM.
# * With `split` > 1, the blocks write their sums in fp32: for each part of `k`, a whole m × n output. The second kernel
#   reads all of them and writes the final output with 2 bytes per element. All three kinds of bytes move at
#   `chip["byte_per_s"]`, and the launch takes `chip["launch_s"]`. Without a split, none of this is needed.

# %%
CHIP = {"sm_count": 108, "sm_flop_per_s": 312e12 / 108, "byte_per_s": 2.039e12}
CHIP |= {"launch_s": 3e-6, "splits": [1, 2, 4, 8, 16], "tiles": []}
for m, n, share, per_sm in ((256, 128, 0.9, 1), (128, 128, 0.8, 1), (64, 64, 0.5, 2)):
    CHIP["tiles"].append({"m": m, "n": n, "efficiency": share, "per_sm": per_sm})

# %% [markdown]
# **Predict:** this chip is an A100 with three kinds of tiles, whose efficiencies are invented. For m = n = 1024,
# compare the best of all choices with the best one without a split: what is the speedup for k = 1024, and for k =
# 65,536?

# %%
predict("short_k", "For k = 1024, the speedup from splitting is", unit="times")
predict("long_k", "For k = 65,536, the speedup from splitting is", unit="times")


# %% solve="tile_choice"
def product_s(m, n, k, tile, split, chip):
    """Seconds of an m × n product over k, with tiles of one kind."""
    ### BEGIN SOLUTION
    blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
    waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
    flop = 2 * tile["m"] * tile["n"] * -(-k // split)
    rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
    spent_s = waves * flop / rate
    if split > 1:
        moved = (2 * 4 * split + 2) * m * n
        spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
    return spent_s
    ### END SOLUTION


def best_tile(m, n, k, chip):
    """(number of the tile, split) of the fastest product."""

    ### BEGIN SOLUTION
    def took(choice):
        return product_s(m, n, k, chip["tiles"][choice[0]], choice[1], chip)

    tiles = range(len(chip["tiles"]))
    return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
    ### END SOLUTION


# %% check="tile_choice"
check("tile_choice")

# %%
with requires_solution("tile_choice"), reveal_prediction("short_k", "long_k") as truth:
    gained = []
    for k in (1024, 65536):
        tile, split = best_tile(1024, 1024, k, CHIP)
        best_s = product_s(1024, 1024, k, CHIP["tiles"][tile], split, CHIP)
        whole_s = min(product_s(1024, 1024, k, one, 1, CHIP) for one in CHIP["tiles"])
        gained.append(whole_s / best_s)
        print(f"modelled, k = {k}: tile {tile} in {split} parts, {seconds(best_s)}")
    truth(short_k=gained[0], long_k=gained[1])

# %% [markdown]
# An output of 1024 × 1024 has 64 tiles of 128 × 128 for 108 SMs, or 32 of the large tiles. Split into 16 parts, these
# 32 give 512 blocks, which is nearly five full waves. But writing and adding up the partial sums takes the same time
# for every `k`, so a short sum is better left whole. The weight gradients of a layer with few channels and a large
# batch benefit from a split: they are a small output, summed over the whole batch.

# %% [markdown]
# ## 4. The order of a sum
#
# A computer rounds after each addition, so a sum depends on its order. Deck [002] notes, on determinism, that
# `atomicAdd` adds in the order in which threads happen to arrive. **Predict:** add the six numbers below in float16,
# one after the other, in all possible orders. How far apart are the largest and the smallest sum? (The exact sum is 2.)

# %% given
import torch

SIX = [2048.0, 1.0, -2048.0, 1.0, 1024.0, -1024.0]


def rounded(value, fmt):
    """The number of a format next to value: "float16", "bfloat16", "float32"."""
    return torch.tensor(value, dtype=torch.float64).to(getattr(torch, fmt)).item()


# %%
predict("apart", "The largest and the smallest sum differ by", unit="1")

# %% [markdown]
# Write two functions.
#
# `range_of_sums(values, fmt)` → `(smallest, largest)`: the smallest and the largest sum that you can get by adding
# `values` one after the other, in any order, rounded to `fmt` after each addition. There are at most seven values, each
# a number of that format.
#
# `steady_sum(gpu, values, out)` puts the sum of `values`, 270 to 500 float32 numbers, into `out[0]`, with the same
# bits in whatever order blocks and warps run. New here: `gpu.array("parts", 8)` makes an array in global memory,
# launches run one after the other, and `cuda.atomic.add(array, index, value)` adds without a race. `out` and new
# arrays contain arbitrary values before you write to them. The judge replays your program with several random orders
# of arrival. Every element must be added exactly once, and every replay must perform the same additions, so that the
# bits are the same. There must be no races, and at least four blocks must read `values`. No result may depend on a
# chain of more than 64 additions, counted across all launches.


# %% solve="order_matters"
from itertools import permutations


def range_of_sums(values, fmt):
    """(smallest, largest) of the sums over all orders."""

    ### BEGIN SOLUTION
    def added(order):
        total = order[0]
        for value in order[1:]:
            total = rounded(total + value, fmt)
        return total

    sums = {added(order) for order in permutations(values)}
    return min(sums), max(sums)
    ### END SOLUTION


def steady_sum(gpu, values, out):
    """out[0] becomes the sum of values."""

    ### BEGIN SOLUTION
    def of_blocks(cuda, values, parts):
        x, first = cuda.threadIdx.x, cuda.grid(1)
        tile = cuda.shared.array(64)
        own = 0.0
        for i in range(first, len(values), cuda.gridsize(1)):
            own = own + values[i]
        tile[x] = own
        for half in (32, 16, 8, 4, 2, 1):
            cuda.syncthreads()
            if x < half:
                tile[x] = tile[x] + tile[x + half]
        if x == 0:
            parts[cuda.blockIdx.x] = tile[0]

    def of_parts(cuda, parts, out):
        total = parts[0]
        for i in range(1, len(parts)):
            total = total + parts[i]
        out[0] = total

    parts = gpu.array("parts", 4)
    gpu.launch(of_blocks, values, parts, grid=4, block=64)
    gpu.launch(of_parts, parts, out, grid=1, block=1)
    ### END SOLUTION


# %% check="order_matters"
check("order_matters")


# %%
def arriving(cuda, values, out):
    """Every thread adds its element when it arrives."""
    cuda.atomic.add(out, 0, values[cuda.grid(1)])


def sums_of(program, seeds=8):
    """The different sums of eight runs, in float32."""
    gpu = VirtualWarp()
    numbers = torch.randn(256, generator=torch.Generator().manual_seed(0)).numpy()
    values, out = gpu.array("values", numbers), gpu.array("out", [0.0])
    program(gpu, values, out)
    runs = [gpu.replay(arrival_seed=seed) for seed in range(seeds)]
    return sorted({float(run.values("out")[0]) for run in runs})


# %%
with requires_solution("order_matters"), reveal_prediction("apart") as truth:
    low, high = range_of_sums(SIX, "float16")
    print(f"{low:g} to {high:g}")
    loose = sums_of(lambda gpu, *both: gpu.launch(arriving, *both, grid=8, block=32))
    print("modelled, in order of arrival:", loose)
    print("modelled, yours:", sums_of(steady_sum))
    truth(high - low)

# %% [markdown]
# A sum whose bits never change is not more accurate, but it can be compared: if a loss curve differs from yesterday's,
# there is a reason. That is what `torch.use_deterministic_algorithms(True)` asks for. The price is a second pass where
# one would have been enough, or a RuntimeError where torch has no other algorithm. (Within one warp, threads can also
# add up with *shuffles*, which pass values from register to register, without shared memory: [001]'s warp-level
# primitives.)

# %% [markdown]
# ## Practice: the first layers of a network
#
# Compare a dense 3 × 3 convolution with 64 channels on 32 images of 56 × 56 pixels with the depth-wise one, which needs
# 64 times fewer FLOPs. **Predict** how many times as fast the depth-wise one is on a V100 with 125 TFLOP/s and 0.9
# TB/s, in 2-byte types.

# %%
predict("quicker", "The speedup of the depth-wise one is", unit="times")

# %% [markdown]
# For first layers, deck [002] recommends dense convolutions instead of depth-wise ones, no squeeze-and-excitation, no
# layer normalization, and rearranged pixels for large images. (It says PixelShuffle, but its inverse, `PixelUnshuffle`,
# is what makes an image smaller.) Write `stem_s(stem, machine)` → seconds, the sum over the layers of a *stem* (a
# network's first layers). `stem["input"]` is `(batch, channels, height, width)`, and `stem["layers"]` is a list of
# dicts with a `kind`:
#
# | kind | the output has | FLOP | elements moved |
# |---|---|---|---|
# | `"conv"`: `channels`, `kernel`, `stride` | sides / stride, rounded up | 2 · output · inputs · kernel² | all |
# | `"depthwise"`: `kernel`, `stride` | same channels, sides as above | 2 · output · kernel² | all |
# | `"unshuffle"`: `factor` f | f² times the channels, sides / f | none | input, output |
# | `"layer_norm"` | the same | none that count | input, output |
# | `"se"` | the same | none that count | the input twice (to average, to scale), output |
# | `"batch_norm"`, `"relu"` | the same | none | none: folded into the preceding convolution |
#
# `all` means input, weights and output; `output` is the number of output elements, and `inputs` the number of input
# channels. The output of `"conv"` has `channels` channels. An element has 2 bytes. A layer takes `FLOP /
# machine["flop_per_s"]` or `bytes / machine["byte_per_s"]`, whichever is longer. Tensor cores pad the input channels
# of a dense convolution with zeros to a multiple of `machine["multiple"]` ([002]: in FP16 "multiples of 8; on A100,
# multiples of 64", in INT8 multiples of 16). A stride skips pixels, so no FLOPs are spent on pixels that are not in
# the output. Depth-wise convolutions are not padded, and padding does not add to the bytes of any layer.


# %% solve="first_layers"
def stem_s(stem, machine):
    """Seconds of all layers of a stem."""
    ### BEGIN SOLUTION
    batch, channels, height, width = stem["input"]
    total_s = 0.0
    for layer in stem["layers"]:
        kind = layer["kind"]
        came = batch * channels * height * width
        flop, elements = 0, came
        if kind in ("conv", "depthwise"):
            height = -(-height // layer["stride"])
            width = -(-width // layer["stride"])
            inputs, padded = 1, 1
            if kind == "conv":
                step = machine["multiple"]
                inputs, padded = channels, -(-channels // step) * step
                channels = layer["channels"]
            weights = channels * inputs * layer["kernel"] ** 2
            went = batch * channels * height * width
            flop = 2 * went * padded * layer["kernel"] ** 2
            elements += weights + went
        elif kind == "unshuffle":
            channels *= layer["factor"] ** 2
            height //= layer["factor"]
            width //= layer["factor"]
            elements += came
        elif kind in ("layer_norm", "se"):
            elements += came if kind == "layer_norm" else 2 * came
        else:
            elements = 0
        moving_s = 2 * elements / machine["byte_per_s"]
        total_s += max(flop / machine["flop_per_s"], moving_s)
    return total_s
    ### END SOLUTION


# %% check="first_layers"
check("first_layers")

# %%
V100 = {"flop_per_s": 125e12, "byte_per_s": 0.9e12, "multiple": 8}
IMAGES = (32, 3, 224, 224)


def layers(*kinds, **fields):
    return [{"kind": kind, "kernel": 3, "stride": 1, **fields} for kind in kinds]


with requires_solution("first_layers"), reveal_prediction("quicker") as truth:
    took = {}
    for kind in ("conv", "depthwise"):
        one = {"input": (32, 64, 56, 56), "layers": layers(kind, channels=64)}
        took[kind] = stem_s(one, V100)
        print(f"modelled, {kind}: {seconds(took[kind])}")
    truth(took["conv"] / took["depthwise"])

# %%
with requires_solution("first_layers"):
    small = layers("conv", channels=32, stride=2) + layers("batch_norm", "relu")
    plain = small + layers("conv", channels=32)
    for name, more in (
        ("dense", plain),
        ("with SE", [*plain, {"kind": "se"}]),
        ("with LN", [*plain, {"kind": "layer_norm"}]),
        ("depth-wise", small + layers("depthwise")),
        (
            "unshuffled",
            [{"kind": "unshuffle", "factor": 4}, *layers("conv", channels=32)],
        ),
    ):
        took_s = stem_s({"input": IMAGES, "layers": more}, V100)
        print(f"modelled, {name}: {seconds(took_s)}")

# %% [markdown]
# The dense convolution has 287.2 FLOP/B and is limited by compute; the depth-wise one has 4.50 FLOP/B and is limited by
# memory. (With one image both would take less time than a launch of 5 µs, and nothing would be gained.) EfficientNet v1
# and MobileNet consist of depth-wise layers and break the deck's rule; EfficientNet v2 has dense ones in its first
# stages and is faster. A single squeeze-and-excitation costs nearly as much as the stem. Later layers have few pixels
# and many channels; there the deck allows all of these kinds.

# %% [markdown]
# ## Where you are

# %%
Progress("lab08_kernels")
