# %% [markdown]
# # GPU basics: two clocks in one machine
#
# A GPU is a second computer with its own queue, its own memory and its own sense of time. Most wrong numbers in deep
# learning come from forgetting one of the three.
#
# After this lab you can
#
# * say when a line of Python returns and when its work is done, and time both without fooling yourself;
# * name what is wrong with somebody else's timer;
# * compute a chip's peak from its clock, and refuse a result that is faster than light;
# * predict the steps in a matrix product's speed from tiles and waves;
# * price a transfer, and hide it behind computation.
#
# **About 90 minutes.** No GPU is needed: where one is wanted, this notebook uses it if it is here, and
# otherwise shows figures that say where they come from. In each section, *write your prediction down* before you run
# the next cell. Lecture slides are quoted by their deck: [001] course introduction, [002] software perspective, [003]
# performance and profiling.

# %% setup
try:
    from edl_labs import Progress, check, hint  # noqa: F401
    from edl_labs.ui.once_written import once_written
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("edl_labs is not installed in this kernel; labs/README.md says how") from error

# %% parameters
launches = 1000
copy_mebibytes = 256

# %% [markdown]
# ## 1. Three toasts
#
# Deck [002] opens with breakfast. A pan holds two slices of toast, and one side of a slice takes one minute. You want
# three slices, both sides. Two slices together take two minutes; then the third takes two more: four minutes.
#
# **Predict:** can it be done faster? How fast at best, and why not faster still?

# %%
sides, places = 3 * 2, 2
print(f"slice by slice: {2 * 2} min; the pan cannot do it in less than {sides / places:.0f} min")

# %% [markdown]
# Three minutes: fry A and B, then A's other side with C, then the second sides of B and C. The pan is full every
# minute, so nothing can be faster. In the four-minute plan it was half empty for two minutes, and *a half-empty pan
# costs a whole minute*.
#
# The pan is a GPU, the slices are your data. Keep two questions for the rest of this lab: **is the pan ever empty?**
# (sections 2 and 6: the device waits for the host, or for data) and **is it ever half empty?** (section 5: the work
# does not divide by the number of places).

# %% [markdown]
# ## 2. The host does not wait
#
# Python runs on the *host*. `y = model(x)` does not compute `y`: it puts kernels into the device's queue and returns. A
# queue of one kind (a *stream*) runs its operations one after another, in order. The host meanwhile goes on, until
# something makes it wait: a synchronisation, a blocking copy, or `y.item()`, which needs the number now.
#
# **Predict:** launching takes the host 5 µs, and the kernel runs for 200 µs. You launch it ten times. When does the
# host return from the tenth launch? When is the device done? And if the kernel runs for 2 µs?
#
# Now write the rule down as code. A program is a list of operations, each a name and a duration in seconds:
#
# | operation | the host | the device |
# |---|---|---|
# | `("launch", s)` | is busy for `launch_s`, then goes on | runs it for `s`, once it is launched and its turn comes |
# | `("copy", s)` | the same: an asynchronous copy | copies for `s`, in the same queue |
# | `("blocking copy", s)` | is busy for `launch_s`, then waits until the copy is done | the same |
# | `("host", s)` | computes for `s` itself | knows nothing of it |
# | `("sync", 0.0)` | waits until the device has done all that is queued | |
#
# `finish_times(program, launch_s=...)` returns `(host_s, device_s)`: when the host is through with the program, and
# when the device has done its last operation (0.0 if it had none). The check asks for every beginning of a program, so
# it can say which operation goes wrong first.


# %% solve="finish_times"
def finish_times(program, *, launch_s):
    """(host_s, device_s): when the host is through with `program`, and when the device is done."""
    ### BEGIN SOLUTION
    host_s = device_s = 0.0
    for name, duration_s in program:
        if name == "host":
            host_s += duration_s
        elif name == "sync":
            host_s = max(host_s, device_s)
        else:
            host_s += launch_s
            device_s = max(host_s, device_s) + duration_s
            host_s = device_s if name == "blocking copy" else host_s
    return host_s, device_s
    ### END SOLUTION


# %% check="finish_times"
check("finish_times")

# %% [markdown]
# Look at your prediction again, now with your own function.

# %%
from edl_labs import units

with once_written("finish_times"):
    for kernel_s in (200e-6, 2e-6):
        host_s, device_s = finish_times([("launch", kernel_s)] * 10, launch_s=5e-6)
        print(f"kernels of {units.seconds(kernel_s)}: host {units.seconds(host_s)}, device {units.seconds(device_s)}")

# %% [markdown]
# With long kernels the host is back after 50 µs while the device works for two milliseconds: a timer that reads its
# clock there reports 5 µs a kernel, *forty times too fast*, whatever the kernel does. With short kernels the device is
# done 2 µs after the host: each kernel waits for its launch, and the same timer is nearly right, but what it measures
# is Python. The device's pan was empty for more than half of the time.

# %% [markdown]
# ## 3. What does a measured speed-up mean?
#
# Deck [001] times one convolution (64 filters of 3×3, batch 32, 64 channels, 64×64 pixels, FP32) with and without
# `torch.backends.cudnn.benchmark = True`:
#
# | | off | on | speed-up |
# |---|---|---|---|
# | forward | 1430 µs | 840 µs | 1.70 |
# | forward + backward | 2870 µs | 2260 µs | 1.27 |
#
# **Predict:** how much faster did the backward pass get? Say a number before you subtract.

# %%
off_us, on_us = 2870 - 1430, 2260 - 840
print(f"backward alone: {off_us} µs -> {on_us} µs, a speed-up of {off_us / on_us:.3f}")

# %% [markdown] explain="why_forward_only"
# **Explain (read by your instructor).** The setting tries several algorithms and keeps the fastest. From
# these two rows: what follows for the backward pass, how sure can you be of it, and what would you measure next before
# you tell a colleague to switch it on? Four to eight sentences. Name at least one reason why the subtraction itself may
# mislead.

# %% [markdown]
# ## 4. The speed of light
#
# Before asking *how fast is my code?* ask *how fast can it be?* Two numbers bound every kernel from below: the bytes
# that it must move over the memory's bandwidth, and the operations that it must do over the chip's peak. Peaks are no
# mystery. Deck [002] lists how many multiply-adds one SM does per clock:
#
# | | fp64 | fp32 | tf32 | fp16 | int8 | int4 | int1 |
# |---|---|---|---|---|---|---|---|
# | Volta, CUDA cores | 32 | 64 | | 128 | 256 | | |
# | Volta, tensor cores | | | | 512 | | | |
# | Turing, CUDA cores | 2 | 64 | | 128 | 256 | | |
# | Turing, tensor cores | | | | 512 | 1024 | 2048 | 8192 |
# | A100, CUDA cores | 32 | 64 | | 256 | 256 | | |
# | A100, tensor cores | 64 | | 512 | 1024 | 2048 | 4096 | 16384 |
# | A100, tensor cores, sparse | | | 1024 | 2048 | 4096 | 8192 | |
#
# **Predict:** an A100 has 108 SMs at 1.41 GHz. What is its FP16 peak? The datasheet says 312 TFLOP/s; how near do you
# come?
#
# Write `peak_flop_per_s(row, dtype, sm_count=..., clock_mhz=...)`. A `row` is one architecture, `{"cuda": {"fp32": 64,
# ...}, "tensor": {"fp16": 512, ...}}`; the faster unit that has the dtype counts, and 0.0 comes back when none has it.
# `nvidia-smi` prints clocks in MHz, so that is what you get; return FLOP/s.


# %% solve="peak_from_clock"
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    """Peak FLOP/s for `dtype` on the faster unit of `row`; 0.0 when no unit has it."""
    ### BEGIN SOLUTION
    fma_per_clock = max(unit.get(dtype, 0) for unit in row.values())
    return float(sm_count * fma_per_clock * 2 * clock_mhz * 1e6)
    ### END SOLUTION


# %% check="peak_from_clock"
check("peak_from_clock")

# %% [markdown]
# The table also says what tensor cores were worth when they came: 512 against 64 on Volta is 8×, and 1024 against 64 on
# the A100 is 16× (FP16 on tensor cores against FP32 on CUDA cores). That is where the "8–16×" of the advertisements
# comes from: the same kernel on the same chip gets it only if the multiply-adds were what it waited for.
#
# Now the bound. **Predict:** a friend reports that adding two vectors of 256 MB each (FP32, into a third) took 0.3 ms
# on an A100 with 2039 GB/s. Believe it?

# %%
moved_bytes, bandwidth = 3 * 256e6, 2039e9
print(f"768 MB over 2039 GB/s: {1e3 * moved_bytes / bandwidth:.3f} ms at the very least")

# %% [markdown]
# A result above the speed of light is never luck. Something was not done, or not waited for, or the data lay in a
# cache.
#
# Write `fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s)`. Memory and arithmetic
# work at the same time, so the shortest possible time is the **larger** of the two bounds. Raise `ValueError` (with a
# message that you would like to read) when `time_s` is below it, or is not positive; a time exactly at the bound is
# allowed. Otherwise return the fraction of the speed of light, from 0 to 1: a kernel at 0.5 can become twice as fast,
# one at 0.8 only 1.25 times.


# %% solve="faster_than_light"
def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
    """The shortest possible time over `time_s`; ValueError when `time_s` is impossible."""
    ### BEGIN SOLUTION
    bound_s = max(moved_bytes / bandwidth_byte_per_s, flop / peak_flop_per_s)
    if time_s < bound_s or time_s <= 0:
        raise ValueError(f"{time_s:.3g} s is impossible: the machine needs {bound_s:.3g} s at least")
    return bound_s / time_s
    ### END SOLUTION


# %% check="faster_than_light"
check("faster_than_light")

# %% [markdown]
# ## 5. Tiles and waves: the half-empty pan
#
# A matrix product is cut into *tiles* of the output, and each tile is one thread block on one SM. Two roundings follow.
# **Tile quantization:** a matrix that is not a multiple of the tile still gets whole tiles. **Wave quantization:** the
# SMs take one tile each (let us assume one at a time); when there are more tiles than SMs, the rest waits for a second
# *wave*, and a last wave of one tile takes as long as a full one.
#
# Deck [002]'s picture: tiles of 128 × 128. An output of 256 × 256 needs four. **Predict:** how many does 257 × 256
# need, and how much of their work is wasted?

# %%
from matplotlib import pyplot as plt
from edl_labs.plots import quantization

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
quantization.tile_grid(left, 256, 256, tile_m=128, tile_n=128)
quantization.tile_grid(right, 257, 256, tile_m=128, tile_n=128)
plt.show()

# %% [markdown]
# One row more, six tiles instead of four: half as much work again for 0.4 % more result.
#
# Write `tile_report(m, n, tile_m=..., tile_n=...)` → `(tiles, wasted)`: how many tiles an m × n output needs, and which
# share of the elements that they compute is thrown away (0.0 when nothing is).


# %% solve="tile_quantization"
def tile_report(m, n, *, tile_m, tile_n):
    """(tiles, wasted): whole tiles that cover an m × n output, and the wasted share of what they compute."""
    ### BEGIN SOLUTION
    tiles = -(-m // tile_m) * -(-n // tile_n)
    return tiles, 1 - m * n / (tiles * tile_m * tile_n)
    ### END SOLUTION


# %% check="tile_quantization"
check("tile_quantization")

# %% [markdown]
# Now the waves. An A100 has 108 SMs. **Predict:** 108 tiles take one wave. How efficient are 109 tiles? 120? 216?

# %%
tiles = list(range(1, 451))
busy = [count / (108 * -(count // -108)) for count in tiles]
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
marks = (108, 109, 120, 216, 217)
quantization.sawtooth(axes, tiles, busy, xlabel="tiles", title="Waves on 108 SMs (computed)", marks=marks)
plt.show()

# %% [markdown]
# 109 tiles: 50.5 %. One tile too many halves the efficiency, and it takes hundreds of tiles until the teeth are small.
#
# Write two functions:
#
# * `wave_report(tiles, sm_count=...)` → `(waves, efficiency)`: how many waves, and which share of their places holds a
#   tile;
# * `best_width(m, bound=..., tile_m=..., tile_n=..., sm_count=...)` → a whole number `n` from 1 to `bound`. The layer's
#   output is m × n and you may choose n: which one makes the most of the machine, counting both roundings (wanted
#   elements over all elements that the waves could have computed)? If several are equally good, any of them is right.
#
# You may use `tile_report`; if yours is not right, the reference takes its place when this exercise is graded.


# %% solve="wave_quantization"
def wave_report(tiles, *, sm_count):
    """(waves, efficiency): rounds of `sm_count` tiles, and the share of their places that hold a tile."""
    ### BEGIN SOLUTION
    waves = -(-tiles // sm_count)
    return waves, tiles / (waves * sm_count)
    ### END SOLUTION


def best_width(m, *, bound, tile_m, tile_n, sm_count):
    """The n from 1 to `bound` for which an m × n output makes the most of the machine."""

    ### BEGIN SOLUTION
    def useful_share(n):
        tiles, wasted = tile_report(m, n, tile_m=tile_m, tile_n=tile_n)
        return (1 - wasted) * wave_report(tiles, sm_count=sm_count)[1]

    return max(range(1, bound + 1), key=useful_share)
    ### END SOLUTION


# %% check="wave_quantization"
check("wave_quantization")

# %% [markdown]
# Both roundings together, for a layer with 2048 rows of output and tiles of 256 × 128 on 108 SMs:

# %%
with once_written("wave_quantization"):
    shape = {"tile_m": 256, "tile_n": 128, "sm_count": 108}
    widths = list(range(1, 4097))
    waves = [wave_report(tile_report(2048, n, tile_m=256, tile_n=128)[0], sm_count=108)[0] for n in widths]
    useful = [2048 * n / (w * 108 * 256 * 128) for n, w in zip(widths, waves, strict=True)]
    figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
    best = best_width(2048, bound=4096, **shape)
    quantization.sawtooth(axes, widths, useful, xlabel="n", title="2048 × n on 108 SMs (computed)", marks=(best,))
    plt.show()

# %% [markdown]
# The small teeth are tiles, the large ones are waves. A real library picks another tile size, or splits the sum over K,
# when a tooth is deep, so a measured curve is flatter; it is never without teeth.

# %% [markdown]
# ## 6. Moving a petabyte
#
# Deck [003] asks how long one petabyte takes over common links:
#
# | link | speed | 1 PB |
# |---|---|---|
# | processor, 40 PCIe lanes | 30 GB/s | 9 hours |
# | NVLINK | 40 GB/s | 7 hours |
# | PCIe ×8 (GPU) | 5 GB/s | 2 days |
# | SATA interface | 6 GB/s | 2 days |
# | 56 Gbps InfiniBand | 6.8 GB/s | 2 days |
# | 10 Gbps Ethernet | 1 GB/s | 2 weeks |
#
# **Predict:** one row is wrong by a factor of ten. Which, and how do you know without a datasheet? (Who would need
# InfiniBand if it were barely faster than the cable of a hard disk?)
#
# Write `transfer_s(size, rate, efficiency=1.0)`: seconds for a size like `"1.5 TiB"` over a rate like `"10 Gbit/s"`.
# Sizes and rates come with k, M, G, T, P (powers of 1000) or Ki, Mi, Gi, Ti, Pi (powers of 1024), in `B` or in `bit`.
# `efficiency` is the share of the line's bits that carry data: SATA sends 10 bits for 8, PCIe 3 to 5 send 130 for 128.

# %% given
FACTOR = {"": 1} | {p: 1000**i for i, p in enumerate("kMGTP", 1)} | {f"{p}i": 1024**i for i, p in enumerate("KMGTP", 1)}


# %% solve="petabyte"
def transfer_s(size, rate, *, efficiency=1.0):
    """Seconds to send `size` ("1 PB") over a link of `rate` ("6 Gbit/s") of whose bits `efficiency` carry data."""

    ### BEGIN SOLUTION
    def in_bytes(text):
        number, unit = text.removesuffix("/s").split()
        if unit.endswith("bit"):
            return float(number) * FACTOR[unit.removesuffix("bit")] / 8
        return float(number) * FACTOR[unit.removesuffix("B")]

    return in_bytes(size) / (in_bytes(rate) * efficiency)
    ### END SOLUTION


# %% check="petabyte"
check("petabyte")

# %%
with once_written("petabyte"):
    for rate, efficiency in (("6 GB/s", 1.0), ("6 Gbit/s", 8 / 10)):
        days = transfer_s("1 PB", rate, efficiency=efficiency) / 86400
        print(f"1 PB over SATA, read as {rate}: {days:.1f} days")

# %% [markdown]
# SATA III is 6 G**bit**/s, and eight in ten of its bits are data: 0.6 GB/s, 19 days instead of two. The capital letter
# was worth a factor of eight, the line code the rest. And 1 PiB is 12.6 % more than 1 PB: at this size, the choice of
# prefix costs days.

# %% [markdown]
# ## Where you are

# %%
Progress("lab01_gpu_basics")
