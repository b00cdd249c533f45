# %% [markdown]
# # Inference: a smaller network, the same answers
#
# A trained network goes to a service. It answers one request after the other, all day, and nobody trains it any more:
# so what only training needed can go, numbers can be as coarse as the answers allow, and half of the weights can be
# left out. Each step here is measured twice: what it does to the *answers*, on a small network that you train in
# seconds, and what it does to *time and bytes*, on a model of a GPU. The two do not follow each other.
#
# After this lab you can
#
# * fold batch norms into the convolutions beside them, and say which ones cannot be folded;
# * find a grid of integers for weights and activations, with outliers, and say what "best" meant;
# * write the product of two int8 matrices with zero points, bias and ReLU in integers;
# * prune and pack weights 2:4, and say beforehand how much of it anybody will notice.
#
# **About 150 minutes**: sections 1 and 3 take 35 to 40 each, section 2 takes 45, section 4 takes 30.
#
# No GPU is needed: what would be on one is modelled and says so. *Write your prediction down* before you run the next
# cell: where there is a box (a number, with or without its unit, Enter), what comes out is shown beside it, and not
# before. Lecture slides are quoted by deck: [002] software perspective. `hint("fold_batch_norm")` gives the hints of an
# exercise, one at a time; a check that fails shows the first case that is not right, and `case("fold_batch_norm")`
# gives that case's inputs as Python values.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.once_written import once_written
    from edl_labs.ui.predictions import predict, revealed
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
training_steps = 120
test_images = 2000

# %% given
import torch

from edl_labs.hardware import accelerator
from edl_labs.inference import fold_batch_norms, integer_grid, rounded_network, sqnr_db
from edl_labs.inference.small_classifier import (
    small_classifier,
    small_images,
    train_classifier,
    uneven_channels,
)
from edl_labs.plots import style
from edl_labs.units import byte_count, percent, seconds

# %%
Progress("lab09_inference")

# %% [markdown]
# The network: four convolutions with batch norms, one of them depth-wise and one grouped, for images of 12 × 12. A few
# pixels of each image are *hot*: thirty times as bright as the rest. And some of its channels are much larger than
# others, as in trained mobile networks (here a factor was planted, and divided out again in the layer behind: no answer
# changed by it).

# %%
model = train_classifier(small_classifier(), steps=training_steps)
model = uneven_channels(model)
images, labels = small_images(test_images, seed=2)
calibration = [small_images(64, seed=seed)[0] for seed in (3, 4, 5)]
with torch.no_grad():
    answers = model(images)


def right(network):
    """The share of the test images that a network gets right."""
    with torch.no_grad():
        return float((network(images).argmax(1) == labels).float().mean())


print(f"as trained: {percent(right(model))} of {len(images)} images are right")

# %% [markdown]
# ## 1. Fold: what training needed and inference does not
#
# In training a batch norm follows the statistics of each batch. In inference they are frozen, and it is one factor and
# one addend for each channel: `y = gain * (x - mean) / sqrt(var + eps) + shift`. Deck [002] says of memory-limited
# layers: "Use BN and activations as they are foldable during inference".
#
# **Predict**, for a layer of a ResNet on an A100 in fp16: a 3 × 3 convolution of 64 to 64 channels on 56 × 56 pixels,
# 32 images, then a batch norm, then a ReLU, each a kernel of its own. The batch norm has two operations an element.
# Which share of the three kernels' operations is that? And which share of their time?

# %% given
CHIP = accelerator("A100-SXM4-80GB")
LAUNCH_S = 4e-6  # a kernel takes no less, however little it does


def kernel_s(flop, moved_bytes, *, rate="fp16", unit="tensor"):
    """The least time of a kernel on CHIP: launch, arithmetic or memory."""
    arithmetic_s = flop / CHIP.peak_flop_per_s(rate, unit=unit)
    return max(LAUNCH_S, arithmetic_s, moved_bytes / CHIP.memory_bandwidth_byte_per_s)


# %%
predict("bn_flop", "Of the operations the batch norm has", unit="%")
predict("bn_time", "Of the time the batch norm takes", unit="%")

# %%
with revealed("bn_flop", "bn_time") as truth:
    elements = 32 * 64 * 56 * 56
    flop = {"conv": 2 * 9 * 64 * elements, "norm": 2 * elements, "relu": elements}
    moved = 2 * 2 * elements  # read and written, two bytes each
    unit = {"conv": "tensor", "norm": "cuda", "relu": "cuda"}
    took = {name: kernel_s(flop[name], moved, unit=unit[name]) for name in flop}
    print("modelled:", {name: seconds(one) for name, one in took.items()})
    truth(
        bn_flop=flop["norm"] / sum(flop.values()),
        bn_time=took["norm"] / sum(took.values()),
    )

# %% [markdown]
# Write `fold_batch_norm(layers)` → the layers of a chain with as few batch norms as can be, and the same outputs
# (within 1e-5). Layers are dicts, in the order in which they run:
#
# | `kind` | has |
# |---|---|
# | `"conv"` | `weight` (outputs × inputs of a group × height × width), `bias` or None, `stride`, `padding`, `groups` |
# | `"transposed"` | the same, but `weight` is *inputs* × *outputs of a group* × height × width |
# | `"batch_norm"` | `gain`, `shift`, running `mean` and `var`, `eps`; `batch_mean`, `batch_var` of the last batch |
# | `"relu"` | nothing |
#
# Of `groups` groups, the first reads the first `inputs / groups` channels and gives the first `outputs / groups`, and
# so on. A batch norm right behind a convolution of either kind can always be folded into it. One right *in front* of a
# `"conv"` can be folded in one of two cases: find out which, and leave it where it would change outputs. In front of a
# `"transposed"` one it stays. Weights and other layers keep their shapes and order.

# %% given
from torch.nn import functional


def run(layers, x):
    """What a chain gives for x (batch × channels × height × width)."""
    for one in layers:
        if one["kind"] == "relu":
            x = functional.relu(x)
        elif one["kind"] == "batch_norm":
            fixed = (one["mean"], one["var"], one["gain"], one["shift"])
            x = functional.batch_norm(x, *fixed, False, 0.0, one["eps"])
        else:
            settings = {name: one[name] for name in ("stride", "padding", "groups")}
            known = {
                "conv": functional.conv2d,
                "transposed": functional.conv_transpose2d,
            }
            x = known[one["kind"]](x, one["weight"], one["bias"], **settings)
    return x


# %% solve="fold_batch_norm"
def fold_batch_norm(layers):
    """The chain with as few batch norms as can be."""

    ### BEGIN SOLUTION
    def line(norm):
        factor = norm["gain"] / torch.sqrt(norm["var"] + norm["eps"])
        return factor, norm["shift"] - factor * norm["mean"]

    def behind(conv, norm):
        factor, rest = line(norm)
        weight, groups = conv["weight"], conv["groups"]
        if conv["kind"] == "transposed":
            own = factor.view(groups, 1, -1, 1, 1)
            scaled = (weight.unflatten(0, (groups, -1)) * own).flatten(0, 1)
        else:
            scaled = weight * factor.view(-1, 1, 1, 1)
        bias = rest if conv["bias"] is None else rest + factor * conv["bias"]
        return {**conv, "weight": scaled, "bias": bias}

    def in_front(norm, conv):
        factor, rest = line(norm)
        weight, groups = conv["weight"], conv["groups"]
        split = weight.unflatten(0, (groups, -1))
        scaled = split * factor.view(groups, 1, -1, 1, 1)
        bias = (split * rest.view(groups, 1, -1, 1, 1)).sum((2, 3, 4)).flatten()
        if conv["bias"] is not None:
            bias = bias + conv["bias"]
        return {**conv, "weight": scaled.flatten(0, 1), "bias": bias}

    done = []
    for layer in layers:
        before = done[-1]["kind"] if done else ""
        if layer["kind"] == "batch_norm" and before in ("conv", "transposed"):
            done[-1] = behind(done[-1], layer)
            continue
        if layer["kind"] == "conv" and not layer["padding"]:
            while done and done[-1]["kind"] == "batch_norm":
                layer = in_front(done.pop(), layer)
        done.append(layer)
    return done
    ### END SOLUTION


# %% check="fold_batch_norm"
check("fold_batch_norm")


# %% given
def chain_of(network):
    """The first twelve layers of our network, as dicts."""
    layers = []
    for one in list(network)[:12]:
        name = type(one).__name__
        if name == "Conv2d":
            own = {"weight": one.weight.detach(), "bias": one.bias}
            own |= {"stride": one.stride[0], "padding": one.padding[0]}
            layers.append({"kind": "conv", **own, "groups": one.groups})
        elif name == "BatchNorm2d":
            own = {"gain": one.weight.detach(), "shift": one.bias.detach()}
            own |= {"mean": one.running_mean, "var": one.running_var, "eps": one.eps}
            own |= {"batch_mean": one.running_mean, "batch_var": one.running_var}
            layers.append({"kind": "batch_norm", **own})
        else:
            layers.append({"kind": "relu"})
    return layers


# %%
with once_written("fold_batch_norm"):
    chain = chain_of(model)
    folded_chain = fold_batch_norm(chain)
    first, second = run(chain, images[:100]), run(folded_chain, images[:100])
    print(f"{len(chain)} layers became {len(folded_chain)}")
    print(f"SQNR of the outputs: {sqnr_db(first, second):.0f} dB")

# %% [markdown]
# (SQNR is the power of the answers over that of the error, in decibel: 20 dB are an error of a tenth, and 6 dB one bit
# more.) Folding changes next to no operations, and takes a quarter of the layer's time: the batch norm was all memory
# traffic. The other way round it is just as common, as the next sections show: *operations fall and time does not*.
#
# A convolution puts zeros around its input *behind* the batch norm; folded in, the zeros would have to become
# `-rest / factor` of each channel, and `padding` has no such setting. And the rule of deck [002], "Remove bias for
# convolutional layers followed by batch normalization", is the same algebra in training: the mean is subtracted, so
# that a bias in front has gradient 0, and costs memory and time for nothing.

# %% [markdown]
# ## 2. Which 256 numbers?
#
# An int8 stands for the number `scale * (q - zero_point)`. On an **affine** grid q goes from -128 to 127, and the zero
# point is a whole number too, so that 0 (padding, ReLU) is exactly on it. A **symmetric** grid has zero point 0 and
# ends at -127 and 127: then a weight and its negative are rounded alike, and products have fewer terms (section 3).
#
# A wide grid is coarse, and a narrow one cuts off. Here is what goes into our fourth convolution:

# %%
folded = fold_batch_norms(model)
with torch.no_grad():
    inner = folded[:9](torch.cat(calibration)).flatten()
figure, pair = style.subplots(1, 2, figsize=(10, 3.2), sharey=True)
for axes, method in zip(pair, ("max", "percentile"), strict=True):
    kept_by = integer_grid(inner, method=method)
    ends = kept_by.restored(torch.tensor([kept_by.lowest, kept_by.highest])).tolist()
    axes.hist(inner.tolist(), bins=120, color=style.BLUE, log=True)
    axes.vlines(torch.linspace(*ends, 33), 0.5, 1.5, color=style.TEXT)
    axes.axvline(ends[1], color=style.ORANGE, linestyle="--", label="upper end")
    axes.set(title=f"{method}: every eighth of 256 numbers", xlabel="activation")
    axes.legend()

# %% [markdown]
# Dashed is the grid's upper end, strokes are every eighth of its numbers. **Predict:** with the end that makes the mean
# squared error least, at which share of the largest activation does it lie, for 8 bits? And for 4 bits, a grid of 16
# numbers? Then the *weights*: if each whole tensor has one grid of 8 bits, and activations stay as they are, how many
# images does the network get right?

# %%
predict("end_of_8_bits", "With 8 bits the best end is, of the largest, at", unit="%")
predict("end_of_4_bits", "With 4 bits the best end is, of the largest, at", unit="%")
predict("one_grid", "With one grid for each weight tensor are right", unit="%")

# %%
with revealed("end_of_8_bits", "end_of_4_bits", "one_grid") as truth:
    shares, found = torch.linspace(0.1, 1, 37), {}
    figure, axes = style.subplots(figsize=(7, 3.2))
    for bits, mark in ((4, "s"), (8, "o")):
        ends = [inner.clamp(max=share * inner.max()) for share in shares]
        near = [integer_grid(kept, bits=bits).rounded(inner) for kept in ends]
        errors = [float(((one - inner) ** 2).mean()) for one in near]
        found[f"end_of_{bits}_bits"] = float(shares[errors.index(min(errors))])
        axes.plot(shares, errors, label=f"{bits} bits", marker=mark, markersize=4)
    axes.set(yscale="log", xlabel="upper end, as a share of the largest activation")
    axes.set(ylabel="mean squared error", title="Cut off, or coarse?")
    axes.legend()
    given = {"per_channel": False, "activations": None}
    one_grid = right(rounded_network(folded, calibration, **given))
    truth(**found, one_grid=one_grid)

# %% [markdown]
# Now your own calibrator. Three functions:
#
# * `grid(low, high, *, symmetric)` → `(scale, zero_point)`: the finest grid that has 0 and both ends of the range on it
#   or between its ends. Zero point: the integer nearest to where 0 lies. (A range of nothing but 0 gets scale 1.)
# * `integers(values, scale, zero_point, *, axis, symmetric)` → a tensor of the nearest integers, ends included. With
#   `axis=None` there is one scale and one zero point; otherwise lists, with one for each index of that dimension.
# * `calibrate(counts, edges, *, method, symmetric)` → `(scale, zero_point)` from a histogram, as a calibrator collects
#   it over thousands of batches: `counts[i]` values (older ones count less: fractions) between `edges[i]` and
#   `edges[i + 1]`. The range to keep runs from edge to edge:
#
# | `method` | keeps |
# |---|---|
# | `"max"` | all bins from the first to the last that has a count |
# | `"percentile"` | the smallest range with at most 0.05 % of all counts beyond each end |
# | `"least"` | the range with the least expected error (2 % more will do) |
#
# Symmetric, it runs from -end to end, where ±end is an edge, and a percentile has at most 0.1 % beyond both together.
# For the expected error take all values of a bin to be at its centre: one between the grid's ends costs
# `scale**2 / 12`, one beyond them the square of its distance to the nearer end.


# %% solve="calibrate"
def grid(low, high, *, symmetric):
    """Scale and zero point for a range."""
    ### BEGIN SOLUTION
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 1.0, 0 if symmetric else -128
    if symmetric:
        return max(-low, high) / 127, 0
    scale = (high - low) / 255
    return scale, round(-128 - low / scale)
    ### END SOLUTION


def integers(values, scale, zero_point, *, axis, symmetric):
    """The nearest integers on the grid."""
    ### BEGIN SOLUTION
    scale, zero = torch.as_tensor(scale), torch.as_tensor(zero_point)
    if axis is not None:
        shape = [1] * values.ndim
        shape[axis] = -1
        scale, zero = scale.view(shape), zero.view(shape)
    steps = torch.round(values / scale) + zero
    return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
    ### END SOLUTION


def calibrate(counts, edges, *, method, symmetric):
    """Scale and zero point for what a histogram has seen."""
    ### BEGIN SOLUTION
    counts, edges = torch.tensor(counts), torch.tensor(edges, dtype=torch.float64)
    centres, total = (edges[:-1] + edges[1:]) / 2, counts.sum()

    def error(low, high):
        scale, zero = grid(low, high, symmetric=symmetric)
        lowest = scale * ((-127 if symmetric else -128) - zero)
        beyond = (lowest - centres).clamp(min=0)
        beyond = beyond + (centres - scale * (127 - zero)).clamp(min=0)
        cost = torch.where(beyond > 0, beyond**2, torch.tensor(scale**2 / 12))
        return float((counts * cost).sum())

    def lost(low, high):
        return float(counts[(centres < low) | (centres > high)].sum() / total)

    ends = edges.tolist()
    if symmetric:
        pairs = [(-end, end) for end in sorted({abs(end) for end in ends}) if end]
    else:
        pairs = [(a, b) for at, a in enumerate(ends) for b in ends[at + 1 :]]
    if method == "least":
        return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
    if symmetric:
        most = 0.001 if method == "percentile" else 0.0
        kept = next(pair for pair in pairs if lost(*pair) <= most)
        return grid(*kept, symmetric=True)
    most = 0.0005 if method == "percentile" else 0.0
    low = max(end for end in ends[:-1] if lost(end, ends[-1]) <= most)
    high = min(end for end in ends[1:] if lost(ends[0], end) <= most)
    return grid(low, high, symmetric=False)
    ### END SOLUTION


# %% check="calibrate"
check("calibrate")

# %% given
from edl_labs.inference import ActivationHistogram


def rounded_by(method, bits):
    """SQNR and share right of the network with its weights and inputs on grids."""
    with torch.no_grad():
        near = rounded_network(folded, calibration, activations=method, bits=bits)
        return f"{sqnr_db(answers, near(images)):.1f} dB, {percent(right(near))} right"


# %%
with once_written("calibrate"):
    seen = ActivationHistogram(bins=512)
    for part in inner.split(10_000):
        seen.add(part)
    counts, edges = seen.trimmed(60)
    options = {"axis": None, "symmetric": False}
    for method in ("max", "percentile", "least"):
        scale, zero = calibrate(counts, edges, method=method, symmetric=False)
        steps = integers(inner, scale, zero, **options).int() - zero
        print(f"{method}: these activations {sqnr_db(inner, scale * steps):.1f} dB")
        for bits in (8, 6):
            print(f"  the network in int{bits}: {rounded_by(method, bits)}")

# %% [markdown]
# Two things to see. First, weights want a grid for **each output channel**: with one for all, channels that are small
# have few numbers left, and folding has made channels more uneven still. It costs nothing in the product, where every
# column has its own factor anyway. Second, the range with the least squared error *of the activations* need not be that
# with the best *answers*: a hot pixel that is cut off costs a lot when squared, and the network never needed it. A
# calibrator can only guess which numbers matter; the accuracy has the last word.

# %% [markdown]
# ## 3. The product in integers
#
# A tensor core multiplies int8 by int8 and adds up in int32. Everything else has to be arranged around that.
# **Predict:** how many products of two int8 can an int16 add up, and be sure? And on an A100, how much faster than in
# fp16 is a linear layer of 4096 to 4096 in int8, for 2048 rows at once; for one row; and one of 256 to 256 for one row?

# %%
predict("fits_16", "Products that an int16 surely holds the sum of:", unit="1")
predict("many_rows", "4096 to 4096, 2048 rows, int8 is faster by", unit="times")
predict("one_row", "4096 to 4096, one row, int8 is faster by", unit="times")
predict("small_layer", "256 to 256, one row, int8 is faster by", unit="times")


# %% given
def linear_s(rows, size, *, rate, weight_bytes):
    """A linear layer on CHIP: `weight_bytes` for each weight, inputs and outputs."""
    width = {"fp16": 2, "int8": 1}[rate]
    moved = weight_bytes * size**2 + 2 * width * rows * size
    return kernel_s(2 * rows * size**2, moved, rate=rate)


# %%
asked = ("fits_16", "many_rows", "one_row", "small_layer")
with revealed("fits_16", "many_rows", "one_row", "small_layer") as truth:
    faster = {}
    for name, rows, size in zip(
        asked[1:], (2048, 1, 1), (4096, 4096, 256), strict=True
    ):
        before = linear_s(rows, size, rate="fp16", weight_bytes=2)
        after = linear_s(rows, size, rate="int8", weight_bytes=1)
        faster[name] = before / after
        print(f"modelled, {name}: {seconds(before)} in fp16, {seconds(after)} in int8")
    truth(fits_16=(2**15 - 1) // (128 * 128), **faster)

# %% [markdown]
# Twice as fast where arithmetic is the limit (2048 instead of 1024 multiply-adds a clock), twice as fast where reading
# the weights is, and not at all where the launch is.
#
# Each input is `x_scale * (x - x_zero)`, and each weight of column j is `weight_scale[j] * (w - weight_zero[j])`.
# Taking the zero points off first would need nine bits. So multiply `(x - x_zero) * (w - weight_zero)` out: of
# the four terms, summed over the depth, the tensor core does one, and what does not depend on x is known *ahead*. Write
#
# * `ahead(weight, bias, *, x_scale, x_zero, weight_scale, weight_zero, out_scale)` → `(offset, multiplier)`, a number
#   for each column. `weight` is int8, depth × columns; `bias` holds real numbers. `offset` holds the integers that can
#   be added to the int32 sums ahead of any input, bias included (rounded to the sums' steps). `multiplier` takes a step
#   of the sums to steps of the output.
# * `int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu)` → int8, rows × columns: the sums, what
#   of the zero points depends on x, the offset; scaled, rounded to the nearest, on the output's grid (-128 to 127).
#   With `relu`, negative numbers become 0.
#
# `weight_scale` and `weight_zero` are lists with one entry for each column. Sums must be those of an int32, not of an
# int8: `x @ weight` of two int8 tensors is int8.


# %% solve="int8_product"
def ahead(weight, bias, *, x_scale, x_zero, weight_scale, weight_zero, out_scale):
    """Offset and multiplier of each column."""
    ### BEGIN SOLUTION
    zeros = torch.tensor(weight_zero)
    step = x_scale * torch.tensor(weight_scale, dtype=torch.float64)
    columns = weight.long().sum(0)
    offset = torch.round(bias / step).long() - x_zero * columns
    offset = offset + len(weight) * x_zero * zeros
    return offset.to(torch.int32), step / out_scale
    ### END SOLUTION


def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    ### BEGIN SOLUTION
    sums = x.int() @ weight.int() + offset
    sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
    out = torch.round(sums * multiplier) + out_zero
    return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
    ### END SOLUTION


# %% check="int8_product"
check("int8_product")

# %% [markdown]
# The last layer of our network, in integers all the way, against the same in float32:

# %%
with once_written("int8_product"), torch.no_grad():
    features = folded[:-1](images)
    last, seen_features = folded[-1], folded[:-1](torch.cat(calibration))
    into, out = integer_grid(seen_features), integer_grid(last(seen_features))
    kept = integer_grid(last.weight.T, symmetric=True, axis=1)
    given = {"weight_scale": list(kept.scale), "weight_zero": [0] * 10}
    given |= {"x_scale": into.scale, "x_zero": into.zero_point, "out_scale": out.scale}
    w, x = kept.integers(last.weight.T).to(torch.int8), into.integers(features)
    made = ahead(w, last.bias.double(), **given)
    zeros = {"weight_zero": [0] * 10, "out_zero": out.zero_point, "relu": False}
    scores = out.restored(int8_product(x.to(torch.int8), w, *made, **zeros))
    print(f"SQNR {sqnr_db(last(features), scores):.1f} dB", end=", ")
    print(f"{percent(float((scores.argmax(1) == labels).float().mean()))} right")

# %% [markdown]
# ReLU cost nothing: it is where the clamp begins ("ReLU is the best activation as it can be fused with conv-BN", deck
# [002]). And the weights' zero point is the only term that needs a sum over x at run time, which is why weights are
# nearly always symmetric.

# %% [markdown]
# ## 4. Two of four
#
# Since Ampere, a tensor core can skip zeros if of four neighbouring weights *that meet in one sum* two are zero. Deck
# [002] promises "Up to 30% speed up", and peak rates double. **Predict:** the whole network is 1.3 times as fast. Which
# share of its time was in products that became twice as fast? And the linear layers of section 3 in fp16, with their
# weights packed (two values and two places of two bits for each four): how much faster are they?

# %%
predict("share", "In sparse products was, of the time,", unit="%")
predict("sparse_many", "4096 to 4096, 2048 rows, sparse is faster by", unit="times")
predict("sparse_one", "4096 to 4096, one row, sparse is faster by", unit="times")

# %% [markdown]
# Write, for a `weight` of inputs × outputs, as in `x @ weight`, with inputs a multiple of eight:
#
# * `mask(weight)` → bools: which weights are kept. Groups are four consecutive inputs of one output; the two largest
#   magnitudes stay.
# * `pack(weight)` → `(values, places)`: of each column the kept values in their order, inputs / 2 × outputs; and their
#   places 0 to 3 in the group, in two bits each, in a uint8 tensor of inputs / 8 × outputs. A byte holds two groups:
#   the lowest two bits are the first place of the first group, then its second, then the second group's.
# * `sparse_product(x, values, places)` → `x @ ` the pruned weight, from what is packed.
# * `sparse_share(faster, *, peak)` → the share of the time *before* that was in products which became `peak` times as
#   fast, if in all it is `faster` times as fast.


# %% solve="two_of_four"
def mask(weight):
    """Which weights are kept."""
    ### BEGIN SOLUTION
    groups = weight.abs().unflatten(0, (-1, 4))
    ranks = groups.argsort(dim=1, descending=True).argsort(dim=1)
    return (ranks < 2).flatten(0, 1)
    ### END SOLUTION


def pack(weight):
    """Kept values, and their places in two bits each."""
    ### BEGIN SOLUTION
    kept = mask(weight).T
    values = weight.T[kept].view(len(kept), -1).T
    place = (kept.nonzero()[:, 1] % 4).view(len(kept), -1, 4)
    bits = (place << torch.tensor([0, 2, 4, 6])).sum(2)
    return values, bits.T.to(torch.uint8)
    ### END SOLUTION


def sparse_product(x, values, places):
    """x times the pruned weight."""
    ### BEGIN SOLUTION
    shifts = torch.tensor([0, 2, 4, 6]).view(1, 4, 1)
    place = ((places.int().unsqueeze(1) >> shifts) & 3).flatten(0, 1).long()
    group = torch.arange(len(values)).view(-1, 1) // 2
    return (x[:, 4 * group + place] * values).sum(1)
    ### END SOLUTION


def sparse_share(faster, *, peak):
    """The share of the time before."""
    ### BEGIN SOLUTION
    return (1 - 1 / faster) / (1 - 1 / peak)
    ### END SOLUTION


# %% check="two_of_four"
check("two_of_four")

# %%
with once_written("two_of_four"):
    with revealed("share", "sparse_many", "sparse_one") as truth:
        values, places = pack(torch.randn(4096, 4096).half())
        each = (2 * values.numel() + places.numel()) / 4096**2
        print(f"{each} B a weight for 2; {byte_count(each * 4096**2)} in all")
        dense, sparse = {}, {}
        for rows in (2048, 1):
            dense[rows] = linear_s(rows, 4096, rate="fp16", weight_bytes=2)
            moved = each * 4096**2 + 4 * rows * 4096
            sparse[rows] = kernel_s(rows * 4096**2, moved)
        truth(sparse_share(1.3, peak=2), sparse_many=dense[2048] / sparse[2048])
        truth(sparse_one=dense[1] / sparse[1])

# %% [markdown]
# And the answers? The two largest convolutions of our network and its linear layer, pruned; then both the pruned
# network and the whole one train for a few steps more. The masks hold while they do ("Sometime requires finetuning",
# deck [002]). **Predict** how many images are right straight after pruning.

# %%
predict("pruned", "Straight after pruning are right", unit="%")

# %% given
import copy

from edl_labs.inference import two_of_four_mask

# %%
with revealed("pruned") as truth:
    sparse_model, masks = copy.deepcopy(model), {}
    for name, part in sparse_model.named_parameters():
        if part.ndim > 1 and part[0].numel() % 4 == 0:
            masks[name] = two_of_four_mask(part.flatten(1)).view_as(part)
            part.data.mul_(masks[name])
    truth(right(sparse_model))
    longer = {"steps": training_steps // 4, "rate": 3e-3}
    train_classifier(sparse_model, masks=masks, **longer)
    whole = train_classifier(copy.deepcopy(model), **longer)
    print(f"after more steps: {percent(right(sparse_model))} with half of the weights")
    print(f"                  {percent(right(whole))} with all of them")

# %%
figure, axes = style.subplots(figsize=(9, 2.6))
pattern = masks["14.weight"].float()
axes.pcolormesh(pattern, cmap="Greys", vmin=-0.3, vmax=1.5, edgecolors=style.TEXT)
axes.set(xlabel="input", ylabel="output", title="Linear layer: of four inputs two stay")
axes.set(xticks=range(0, 33, 4))
for at in range(4, 32, 4):
    axes.axvline(at, color=style.ORANGE, linewidth=2)

# %% [markdown]
# Half of the operations are gone, and a request alone is at best 1.78 times as fast, since it waits for 0.5625 of the
# bytes and not for the operations (in int8 for 0.625 of them). In a whole network products are some of the time: 46 %
# of it, twice as fast, are the 30 % of the slide.

# %% [markdown]
# ## Where you are

# %%
Progress("lab09_inference")
