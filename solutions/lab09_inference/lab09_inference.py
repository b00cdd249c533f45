# %% [markdown]
# # Inference: a smaller network, the same answers
#
# A trained network is deployed in a service. It answers requests all day and is no longer trained. So you can remove
# everything that only training needs, and store numbers as coarsely as the answers allow. You measure each step here
# twice: its effect on the *answers*, using a small network that you train in seconds, and its effect on *time and
# bytes*, using a model of a GPU. Neither effect tells you the other.
#
# After this lab you can
#
# * fold batch norms into the convolutions next to them, and say which ones cannot be folded;
# * choose a grid of integers for weights and for activations with outliers, and say in what sense it is the best;
# * write the product of two int8 matrices with zero points, bias and ReLU in integers, and say when it is faster.
#
# **About 139 minutes (estimated)**. Practice carries no points; it takes another 123 minutes (estimated), and its
# sections can be done in any order.
#
# | exercise | `fold_batch_norm` | `calibrate` | `int8_product` |
# |---|---|---|---|
# | section | 1 | 2 | 3 |
# | minutes | 55 | 58 | 26 |
#
# | practice | `two_of_four` | `memory_plan` | `fuse_and_tune` |
# |---|---|---|---|
# | section | 4 | 5 | 6 |
# | minutes | 30 | 62 | 31 |
#
# Your functions must not change their inputs: build new tensors, or work on copies. You need no GPU: GPU times are
# modelled, and labelled as modelled. *Write your prediction down* before you run the next cell. Where there is a box,
# type a number, with or without its unit, and press Enter; the result appears next to it only then. Lecture slides are
# quoted by deck: [002] software perspective. `hint("fold_batch_norm")` gives the hints of an exercise, one at a time. A
# failing check shows the first case that is wrong, and `case("fold_batch_norm")` returns the inputs of that case as
# Python values.

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
# The network has four convolutions with batch norms, one of them depth-wise and one grouped, and classifies images of
# 12 × 12 pixels. A few pixels of each image are *hot*: thirty times as bright as the rest. And some channels of the
# network are much larger than others, as in trained mobile networks. (Here we multiplied them by a factor and divided
# by it in the next layer, so no answer changed.)

# %%
model = train_classifier(small_classifier(), steps=training_steps)
model = uneven_channels(model)
images, labels = small_images(test_images, seed=2)
calibration = [small_images(64, seed=seed)[0] for seed in (3, 4, 5)]
with torch.no_grad():
    answers = model(images)


def right(network):
    """The share of the test images that a network classifies correctly."""
    with torch.no_grad():
        return float((network(images).argmax(1) == labels).float().mean())


print(f"accuracy as trained: {percent(right(model))} of {len(images)} images")

# %% [markdown]
# ## 1. Fold: what training needs and inference does not
#
# In training a batch norm uses the statistics of each batch. In inference they are frozen:
# `y = gain * (x - mean) / sqrt(var + eps) + shift`, which is `y = factor * x + rest` for each channel, with
# `factor = gain / sqrt(var + eps)` and `rest = shift - factor * mean`. Deck [002] says of memory-limited
# layers: "Use BN and activations as they are foldable during inference".
#
# **Predict**, for a layer of a ResNet on an A100 in fp16: a 3 × 3 convolution of 64 to 64 channels on 56 × 56 pixels,
# 128 images (51 MB: more than its L2 cache holds), then a batch norm, then a ReLU, each a kernel of its own. The batch
# norm takes two operations per element. What percentage of the three kernels' operations is that? And what percentage
# of their time does the batch norm take?

# %% given
CHIP = accelerator("A100-SXM4-80GB")
LAUNCH_S = 4e-6  # the shortest time of a kernel, however little it does


def kernel_s(flop, moved_bytes, *, rate="fp16", unit="tensor"):
    """The least time of a kernel on CHIP: launch, arithmetic or memory."""
    arithmetic_s = flop / CHIP.peak_flop_per_s(rate, unit=unit)
    return max(LAUNCH_S, arithmetic_s, moved_bytes / CHIP.memory_bandwidth_byte_per_s)


# %%
predict("bn_flop", "The batch norm's share of the operations is", unit="%")
predict("bn_time", "The batch norm's share of the time is", unit="%")

# %%
with reveal_prediction("bn_flop", "bn_time") as truth:
    elements = 128 * 64 * 56 * 56
    flop = {"conv": 2 * 9 * 64 * elements, "norm": 2 * elements, "relu": elements}
    moved = 2 * 2 * elements  # two bytes read and two written per element
    unit = {"conv": "tensor", "norm": "cuda", "relu": "cuda"}
    took = {name: kernel_s(flop[name], moved, unit=unit[name]) for name in flop}
    print("modelled:", {name: seconds(one) for name, one in took.items()})
    truth(
        bn_flop=flop["norm"] / sum(flop.values()),
        bn_time=took["norm"] / sum(took.values()),
    )

# %% [markdown]
# Write `fold_batch_norm(layers)` → the layers of a chain with as few batch norms as possible and the same outputs
# (within 1e-5). Layers are dicts, in the order in which they run:
#
# | `kind` | has |
# |---|---|
# | `"conv"` | `weight` (outputs × inputs of a group × height × width), `bias` or None, `stride`, `padding`, `groups` |
# | `"transposed"` | the same, but `weight` is *inputs* × *outputs of a group* × height × width |
# | `"batch_norm"` | `gain`, `shift`, running `mean` and `var`, `eps`; `batch_mean`, `batch_var` of the last batch |
# | `"relu"` | nothing |
#
# `stride`, `padding` and `groups` are ints. The first of the `groups` groups reads the first `inputs / groups` channels
# and computes the first `outputs / groups`, and so on. A batch norm directly after a convolution of either kind can
# always be folded into it. Whether one directly *before* a `"conv"` can be folded depends on one setting of the
# convolution. Find out which setting, and keep the batch norm where folding would change outputs. Also keep it before a
# `"transposed"` layer, and where another layer separates it from the convolution. If one batch norm can be folded, so
# can two in a row. Weights and other layers keep their shapes and order. Do not change `layers` or its tensors.

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
    """The chain with as few batch norms as possible."""

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
import copy


def chain_of(network):
    """The first twelve layers of our network, as dicts."""
    layers = []
    for one in list(copy.deepcopy(network))[:12]:
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
with requires_solution("fold_batch_norm"):
    chain = chain_of(model)
    folded_chain = fold_batch_norm(chain)
    first, second = run(chain, images[:100]), run(folded_chain, images[:100])
    print(f"{len(chain)} layers became {len(folded_chain)}")
    print(f"SQNR of the outputs: {sqnr_db(first, second):.0f} dB")

# %% [markdown]
# (SQNR, the signal-to-quantization-noise ratio, is the power of the answers over the power of the error, in decibels:
# 20 dB is an error of a tenth, and one more bit gives 6 dB.) Folding removes hardly any operations, but it saves a
# quarter of the layer's time: the batch norm was only memory traffic. The opposite is just as common, as the next
# sections show: *the number of operations falls, but the time does not*.
#
# A convolution pads its input with zeros *after* the batch norm. If the batch norm were folded in, the padding would
# have to be `-rest / factor` for each channel, and `padding` has no such setting. Deck [002]'s rule "Remove bias for
# convolutional layers followed by batch normalization" is the same algebra in training: the batch norm subtracts the
# mean, so a bias in front of it has gradient 0 and costs memory and time for nothing.

# %% [markdown]
# ## 2. Which 256 numbers?
#
# An int8 `q` stands for the number `scale * (q - zero_point)`; all these numbers together are a *grid*. On an
# **affine** grid, q goes from -128 to 127, and the zero point is an integer, so the grid contains 0 exactly (which
# padding and ReLU need). A **symmetric** grid has zero point 0; q goes from -127 to 127: then a weight and its negative
# are rounded in the same way, and products have fewer terms (section 3).
#
# A wide grid is coarse, and a narrow grid cuts off large values. Here are the inputs of our fourth convolution:

# %%
folded = fold_batch_norms(model)
with torch.no_grad():
    inner = folded[:9](torch.cat(calibration)).flatten()
span = inner.min().item(), inner.max().item()
figure, pair = style.subplots(1, 2, figsize=(10, 3.2), sharey=True)
pair[0].set_ylabel("values")
for axes, method in zip(pair, ("max", "percentile"), strict=True):
    kept_by = integer_grid(inner, method=method)
    ends = kept_by.restored(torch.tensor([kept_by.lowest, kept_by.highest])).tolist()
    axes.stairs(torch.histc(inner, 120), torch.linspace(*span, 121), color=style.BLUE)
    axes.set_yscale("log")
    axes.vlines(torch.linspace(*ends, 33), 0.5, 1.5, color=style.TEXT)
    axes.axvline(ends[1], color=style.ORANGE, linestyle="--", label="upper end")
    axes.set(title=f"{method}: every eighth of 256 numbers", xlabel="activation")
    axes.legend(loc=(0.1, 0.3))  # below the curve, where no line crosses it

# %% [markdown]
# The dashed line is the grid's upper end, and the ticks are every eighth of its numbers. **Predict:** choose the upper
# end with the smallest mean squared error. At what percentage of the largest activation does it lie, for 8 bits? And
# for 4 bits, a grid of 16 numbers? Then the *weights*: if each weight tensor has one grid of 8 bits, and activations
# are not rounded, what percentage of the images does the network classify correctly?

# %%
predict("end_of_8_bits", "With 8 bits, the best end / largest value is", unit="%")
predict("end_of_4_bits", "With 4 bits, the best end / largest value is", unit="%")
predict("one_grid", "With one grid per tensor, the share correct is", unit="%")

# %%
with reveal_prediction("end_of_8_bits", "end_of_4_bits", "one_grid") as truth:
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
# * `grid(low, high, *, symmetric)` → `(scale, zero_point)`: the finest grid that covers 0 and both ends of the range.
#   On an affine grid, -128 stands for the smaller of `low` and 0. The zero point is the integer nearest to the place of
#   0. (If `low` and `high` are both 0, the scale is 1 and the zero point -128, or 0 if symmetric.)
# * `integers(values, scale, zero_point, *, axis, symmetric)` → a tensor of the nearest integers of the grid; values
#   beyond its ends are set to the ends. With `axis=None` there is one scale and one zero point; otherwise both are
#   lists with one entry for each index of that dimension.
# * `calibrate(counts, edges, *, method, symmetric)` → `(scale, zero_point)` from a histogram, as a calibrator collects
#   it over thousands of batches: `counts[i]` values lie between `edges[i]` and `edges[i + 1]`. (Older values
#   count less, so counts can be fractions; not all are 0.) The range to keep runs from one edge to another:
#
# | `method` | keeps |
# |---|---|
# | `"max"` | all bins from the first to the last that has a count |
# | `"percentile"` | the smallest range with at most 0.05 % of all counts beyond each end |
# | `"least"` | the range with the smallest expected error (an error up to 2 % larger also passes) |
#
# A symmetric range runs from -end to end: at least one of the two is an edge, and no bin extends across the other. With
# `"percentile"`, it has at most 0.1 % of all counts beyond both ends together. For the expected error, treat all values
# of a bin as if they were at its centre: a value between the grid's ends costs `scale**2 / 12`, and a value beyond them
# costs the square of its distance to the nearer end.


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
    """Scale and zero point for the values in a histogram."""
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
    """SQNR and accuracy of the network with its weights and inputs on grids."""
    with torch.no_grad():
        near = rounded_network(folded, calibration, activations=method, bits=bits)
        return (
            f"{sqnr_db(answers, near(images)):.1f} dB, {percent(right(near))} correct"
        )


# %%
with requires_solution("calibrate"):
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
# Notice two things. First, weights need a grid for **each output channel**: with one grid for all, a channel with small
# weights uses only a few of the numbers, and folding has made channels even more uneven. A grid per channel costs
# nothing in the product, where every column has its own factor anyway. Second, the range with the least squared error
# *of the activations* need not give the best *answers*: cutting off a hot pixel causes a large squared error, but the
# network never needed that pixel. A calibrator can only guess which numbers matter; only the accuracy tells you.

# %% [markdown]
# ## 3. The product in integers
#
# A tensor core multiplies int8 by int8 and adds up in int32. Everything else has to be done around it. **Predict:** how
# many products of two int8 numbers can always be summed in an int16 without overflow? And on an A100, take a linear
# layer with 4096 inputs and 4096 outputs: how many times as fast is it in int8 as in fp16, for 2048 rows at once? And
# for one row? And a layer with 256 inputs and 256 outputs, for one row?

# %%
predict("fits_16", "An int16 can always hold the sum of", unit="products")
predict("many_rows", "4096 × 4096, 2048 rows: int8 is faster by", unit="times")
predict("one_row", "4096 × 4096, one row: int8 is faster by", unit="times")
predict("small_layer", "256 × 256, one row: int8 is faster by", unit="times")


# %% given
def linear_s(rows, size, *, rate, weight_bytes):
    """Time of a size × size layer on CHIP, with `weight_bytes` for each weight."""
    width = {"fp16": 2, "int8": 1}[rate]
    moved = weight_bytes * size**2 + 2 * width * rows * size
    return kernel_s(2 * rows * size**2, moved, rate=rate)


# %%
asked = ("fits_16", "many_rows", "one_row", "small_layer")
with reveal_prediction("fits_16", "many_rows", "one_row", "small_layer") as truth:
    faster = {}
    for name, rows, size in zip(
        asked[1:], (2048, 1, 1), (4096, 4096, 256), strict=True
    ):
        before = linear_s(rows, size, rate="fp16", weight_bytes=2)
        after = linear_s(rows, size, rate="int8", weight_bytes=1)
        faster[name] = before / after
        print(f"modelled, {name}: {seconds(before)} in fp16, {seconds(after)} in int8")
    print(
        "twice as fast if arithmetic or weights are the limit; a launch stays the same"
    )
    truth(fits_16=(2**15 - 1) // (128 * 128), **faster)

# %% [markdown]
# Each input is `x_scale * (x - x_zero)`, and each weight of column j is `weight_scale[j] * (w - weight_zero[j])`.
# Subtracting the zero points first would need nine bits. So expand `(x - x_zero) * (w - weight_zero)`, and sum the
# four terms over the depth. The tensor core computes one of them, and terms that do not depend on x can be computed
# *ahead*. Write
#
# * `ahead(weight, bias, *, x_scale, x_zero, weight_scale, weight_zero, out_scale)` → `(offset, multiplier)`, each with
#   one number for each column. `weight` is int8, depth × columns; `bias` holds real numbers. `offset` (int32) contains
#   the integers that are added to the int32 sums and are known before any input. They include the bias, converted to
#   units of the sums and rounded. `multiplier` converts units of the sums to steps of the output's grid.
# * `int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu)` → int8, rows × columns: combine the
#   sums, the zero-point term that depends on x, and the offset; scale and round to the nearest integer (no case has
#   ties); then put the result on the output's grid (-128 to 127). With `relu`, negative numbers become 0.
#
# `weight_scale` and `weight_zero` are lists with one entry for each column. Compute sums in int32, not in int8: `x @
# weight` of two int8 tensors is int8.


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
# Now compute the last layer of our network entirely in integers, and compare it with float32:

# %%
with requires_solution("int8_product"), torch.no_grad():
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
    print(f"{percent(float((scores.argmax(1) == labels).float().mean()))} correct")

# %% [markdown]
# ReLU cost nothing: it only changes the lower end of the clamp ("ReLU is the best activation as it can be fused with
# conv-BN", deck [002]). And only the weights' zero point needs a sum over x at run time, which is why weights are
# nearly always symmetric.
#
# So far you have a network with fewer kernels, a quarter of the bytes of float32, and the same answers. Each step
# helped only if it reduced what *limits* the kernel: folding saves traffic, int8 saves bytes and arithmetic, and
# neither helps a kernel that waits for its launch.

# %% [markdown]
# ## 4. Practice: two of four
#
# From here on everything is optional and carries no points. You can also remove half of the weights. Since Ampere, a
# tensor core can skip zeros if two of every four neighbouring weights *of one sum* are zero. This doubles its peak
# rate. Deck [002] prunes with APEX (ASP; today `torch.sparse.to_sparse_semi_structured` stores such a weight) and
# promises "Up to 30% speed up". **Predict:** if the whole network is 1.3 times as fast, what percentage of its time was
# in products that became twice as fast? And how many times as fast is the large linear layer from section 3 in fp16
# with packed weights (for every four weights, two values and two 2-bit places)?

# %%
predict("share", "The share of the time in sparse products was", unit="%")
predict("sparse_many", "4096 × 4096, 2048 rows: sparse is faster by", unit="times")
predict("sparse_one", "4096 × 4096, one row: sparse is faster by", unit="times")

# %% [markdown]
# Write, for a `weight` of inputs × outputs, as in `x @ weight`, with inputs a multiple of eight:
#
# * `mask(weight)` → bools: which weights are kept. A group is four consecutive inputs of one output. Keep exactly the
#   two largest magnitudes; if magnitudes are equal, any choice is right.
# * `pack(weight)` → `(values, places)`. `values` has shape (inputs / 2, outputs) and holds the kept values of each
#   column in order. `places` is a uint8 tensor of shape (inputs / 8, outputs). It holds the place of each value in its
#   group, 0 to 3, in two bits. A byte holds the places of two groups: from the lowest bits up, the two places of the
#   first group, then the two of the second.
# * `sparse_product(x, values, places)` → `x @ ` the pruned weight, computed from the packed tensors.
# * `sparse_share(faster, *, peak)` → the fraction of the *original* time that was spent in products that became `peak`
#   times as fast, given that the whole network became `faster` times as fast.


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
    """The products' share of the original time."""
    ### BEGIN SOLUTION
    return (1 - 1 / faster) / (1 - 1 / peak)
    ### END SOLUTION


# %% check="two_of_four"
check("two_of_four")

# %%
with requires_solution("two_of_four"):
    with reveal_prediction("share", "sparse_many", "sparse_one") as truth:
        values, places = pack(torch.randn(4096, 4096).half())
        each = (2 * values.numel() + places.numel()) / 4096**2
        print(f"{each} B per weight instead of 2; {byte_count(each * 4096**2)} in all")
        dense, sparse = {}, {}
        for rows in (2048, 1):
            dense[rows] = linear_s(rows, 4096, rate="fp16", weight_bytes=2)
            moved = each * 4096**2 + 4 * rows * 4096
            sparse[rows] = kernel_s(rows * 4096**2, moved)
        truth(sparse_share(1.3, peak=2), sparse_many=dense[2048] / sparse[2048])
        truth(sparse_one=dense[1] / sparse[1])

# %% [markdown]
# What happens to the answers? We prune the layers whose sums have a multiple of four terms: two convolutions and the
# linear layer. Then we train both the pruned and the original network for a few more steps. Pruned weights stay 0
# during this training ("Sometime requires finetuning", deck [002]). **Predict** what percentage of the images is
# classified correctly directly after pruning.

# %%
predict("pruned", "Directly after pruning, the share correct is", unit="%")

# %% given
from edl_labs.inference import two_of_four_mask

# %%
with reveal_prediction("pruned") as truth:
    sparse_model, masks = copy.deepcopy(model), {}
    for name, part in sparse_model.named_parameters():
        if part.ndim > 1 and part[0].numel() % 4 == 0:  # groups of four fit into a sum
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
axes.set(
    xlabel="input",
    ylabel="output",
    title="Linear layer: dark weights are kept, two of every four inputs",
)
axes.set(xticks=range(0, 33, 4))
for at in range(4, 32, 4):
    axes.axvline(at, color=style.ORANGE, linewidth=2)

# %% [markdown]
# Half of the operations are gone, but a single request is at most 1.78 times as fast, since it waits for memory and
# still reads 0.5625 of the bytes (0.625 of them in int8). In a whole network, products take only part of the time:
# making 46 % of it twice as fast gives the 30 % from the slide.

# %% [markdown]
# ## 5. Practice: one arena for all activations
#
# TensorRT, which builds optimized networks called *engines*, "Minimizes memory footprint and re-uses memory for tensors
# efficiently" (deck [002]). No backward pass needs the activations, so all of them share one piece of memory, an
# *arena*, in which each has a fixed offset. Here are the kernels of our network.

# %% given
from edl_labs.graph import Graph


def kernels_of(graph):
    """A graph's operators as kernels; the bytes of each tensor except parameters."""
    mine = {
        name: one.bytes
        for name, one in graph.tensors.items()
        if one.role not in ("parameter", "buffer") and not one.is_view
    }
    kernels = []
    for node in graph.nodes:
        reads = dict.fromkeys(graph.tensors[name].base for name in node.reads)
        for name in set(node.makes) & set(mine):
            own = {"reads": [one for one in reads if one in mine], "writes": name}
            kernels.append({**own, "in_place": node.kind == "pointwise"})
    return kernels, mine


# %%
graph = Graph.of(folded, images[:64])
kernels, sizes = kernels_of(graph)
outputs = [kernels[-1]["writes"]]
for one in kernels:
    size = byte_count(sizes[one["writes"]])
    print(f"{one['reads']} → {one['writes']}, {size}{', in place' * one['in_place']}")

# %% [markdown]
# **Predict:** what percentage of the bytes of all these tensors does the arena need?

# %%
predict("arena", "Of all tensors' bytes, the arena needs", unit="%")

# %% [markdown]
# Kernels run in the order of a list. Each is a dict of `reads` (names of tensors), `writes` (one name) and `in_place`
# (whether it may overwrite a tensor that it reads). A tensor that no kernel writes is an input of the network.
# `outputs` lists the names of the tensors that the caller reads after the last kernel, and `sizes` has the bytes of
# each tensor. Write
#
# * `lifetimes(kernels, outputs)` → a dict of `(first, last)` for each tensor: the numbers of the first and the last
#   kernel that runs while it is in memory. Inputs are in memory from kernel 0 on, outputs until the last kernel. A
#   tensor that no kernel reads is needed only while it is written.
# * `may_overwrite(at, kernels, outputs, sizes)` → the names, in the order of `reads`, of the tensors that kernel `at`
#   may overwrite: the kernel is `in_place`, the tensor has as many bytes as the one written, no later kernel reads it,
#   and it is not an output.
# * `least_bytes(kernels, outputs, sizes, *, align)` → the largest number of bytes needed while any one kernel runs.
#   Each tensor takes its size rounded up to a multiple of `align`. If a kernel may overwrite one of its inputs, its
#   output needs no memory of its own while that kernel runs.
# * `memory_plan(kernels, outputs, sizes, *, align)` → a dict of each tensor's offset, a multiple of `align`. Tensors
#   that are in memory at the same time must not overlap, with one exception: a kernel's output may have exactly the
#   place of a tensor that the kernel may overwrite. The arena may be up to 10 % larger than `least_bytes`.


# %% solve="memory_plan"
def lifetimes(kernels, outputs):
    """First and last kernel of each tensor."""
    ### BEGIN SOLUTION
    lives = {}
    for at, kernel in enumerate(kernels):
        for name in kernel["reads"]:
            first = lives[name][0] if name in lives else 0
            lives[name] = (first, at)
        lives[kernel["writes"]] = (at, at)
    for name in outputs:
        lives[name] = (lives[name][0], len(kernels) - 1)
    return lives
    ### END SOLUTION


def may_overwrite(at, kernels, outputs, sizes):
    """The tensors that kernel `at` may overwrite."""
    ### BEGIN SOLUTION
    kernel = kernels[at]
    later = {name for one in kernels[at + 1 :] for name in one["reads"]}
    return [
        name
        for name in kernel["reads"]
        if kernel["in_place"]
        and name not in later | set(outputs)
        and sizes[name] == sizes[kernel["writes"]]
    ]
    ### END SOLUTION


def least_bytes(kernels, outputs, sizes, *, align):
    """The most bytes that one kernel needs in memory."""
    ### BEGIN SOLUTION
    lives, needs = lifetimes(kernels, outputs), []
    for at, kernel in enumerate(kernels):
        here = {name for name, (first, last) in lives.items() if first <= at <= last}
        if may_overwrite(at, kernels, outputs, sizes):
            here.remove(kernel["writes"])
        needs.append(sum(-(-sizes[name] // align) * align for name in here))
    return max(needs)
    ### END SOLUTION


def memory_plan(kernels, outputs, sizes, *, align):
    """The offset of each tensor."""
    ### BEGIN SOLUTION
    lives = lifetimes(kernels, outputs)
    shared = {name: [name] for name in lives}  # tensors that have one place
    for at, kernel in enumerate(kernels):
        for name in may_overwrite(at, kernels, outputs, sizes)[:1]:
            shared[name].append(kernel["writes"])
            shared[kernel["writes"]] = shared[name]
    offsets, placed = {}, []
    for name in sorted(lives, key=sizes.get, reverse=True):
        if name in offsets:
            continue
        size = -(-sizes[name] // align) * align
        first = min(lives[one][0] for one in shared[name])
        last = max(lives[one][1] for one in shared[name])
        start = 0
        for low, high, since, until in sorted(placed):
            if since <= last and first <= until:
                if low - start >= size:
                    break
                start = max(start, high)
        placed.append((start, start + size, first, last))
        offsets.update(dict.fromkeys(shared[name], start))
    return offsets
    ### END SOLUTION


# %% check="memory_plan"
check("memory_plan")

# %%
with requires_solution("memory_plan"), reveal_prediction("arena") as truth:
    there = lifetimes(kernels, outputs)
    offsets = memory_plan(kernels, outputs, sizes, align=256)
    arena = max(offsets[name] + sizes[name] for name in offsets)
    print(f"{byte_count(sum(sizes.values()))} in all, {byte_count(arena)} at once")
    title = "Hatched: outputs of convolutions; plain: the input, and outputs of ReLUs"
    figure, axes = style.subplots(figsize=(9, 3.2))
    for at, (name, (first, last)) in enumerate(there.items()):
        span = (offsets[name] / 1e6, sizes[name] / 1e6)
        color, hatch = ((style.BLUE, ""), (style.ORANGE, "//"))[at % 2]
        look = {"facecolor": color, "hatch": hatch, "edgecolor": style.TEXT}
        axes.broken_barh([(first - 0.45, last - first + 0.9)], span, **look)
    axes.set(xlabel="kernel", ylabel="offset (MB)", title=title)
    truth(arena / sum(sizes.values()))

# %% [markdown]
# (The last tensors are too small to be seen.) The ReLUs took no memory of their own. The longer the network, the
# smaller the arena's share, because only two neighbouring tensors are in memory at a time. A tensor that is needed much
# later is expensive, for example with a skip connection, or as an output in the middle of the network.
#
# ## 6. Practice: the fastest engine
#
# Deck [002] lists two more features of TensorRT: "Layer & Tensor Fusion", which "Optimizes use of GPU memory and
# bandwidth by fusing nodes in a kernel", and "Kernel Auto-Tuning", which "Selects best data layers and algorithms based
# on target GPU platform". For each single layer, and for some groups of neighbouring layers as one kernel, there are
# several *tactics*, that is, implementations. Each tactic was timed a few times; it reads one format and writes one
# (such as "fp16" or "int8"). If two neighbouring tactics have different formats, the conversion is one more kernel.
#
# Take four convolutions from section 1, each followed by a ReLU, and suppose that int8 halves each kernel's time.
# The engine reads and writes fp16 at both ends. **Predict:** how many times as fast is the fused int8 engine as an
# engine with a separate fp16 kernel for every layer (each ReLU included)?

# %%
predict("engine", "Fused and in int8, the engine is faster by", unit="times")

# %% [markdown]
# Write
#
# * `typical_s(times_s)` → the time of a tactic from its runs: the median of all runs except the first, which loads the
#   kernel. (An odd number of runs remains; in some of them the GPU was interrupted.)
# * `fuse_and_tune(layers, tactics, reformat_s, *, given, wanted)` → the names of the tactics of the fastest engine, in
#   the order in which they run. The engine computes each of the `layers` layers once; its input has the format `given`,
#   and its output must have the format `wanted`. A tactic is a dict of `name`, `first` and `last` (the first and the
#   last layer that it computes), `reads` and `writes` (formats) and `times_s`. `reformat_s[i]` is the time to convert
#   the input of layer i from any format to any other; the last entry is for the network's output. There is no
#   conversion between equal formats. (An engine may take 2 % more time than the fastest.)


# %% solve="fuse_and_tune"
def typical_s(times_s):
    """The time of a tactic."""
    ### BEGIN SOLUTION
    warm = sorted(times_s[1:])
    return warm[len(warm) // 2]
    ### END SOLUTION


def fuse_and_tune(layers, tactics, reformat_s, *, given, wanted):
    """The names of the fastest engine's tactics."""
    ### BEGIN SOLUTION
    best = {(0, given): (0.0, [])}  # up to a layer, in a format

    def reached(at, form, spent_s, names):
        best[at, form] = min(best.get((at, form), (spent_s, names)), (spent_s, names))

    for at in range(layers + 1):
        spent_s, names = min(found for (here, _), found in best.items() if here == at)
        for form in {wanted} | {one["reads"] for one in tactics}:
            reached(at, form, spent_s + reformat_s[at], names)
        for one in tactics:
            if one["first"] == at:
                spent_s, names = best[at, one["reads"]]
                after_s = spent_s + typical_s(one["times_s"])
                reached(one["last"] + 1, one["writes"], after_s, [*names, one["name"]])
    return best[layers, wanted][1]
    ### END SOLUTION


# %% check="fuse_and_tune"
check("fuse_and_tune")


# %% given
def engine_tactics(pairs):
    """Each conv and ReLU from section 1, separate and fused, in fp16 and in int8."""
    tactics = []
    for name, share in (("fp16", 1), ("int8", 1 / 2)):
        alone = [took["conv"] * share, took["relu"] * share]
        for at in range(0, 2 * pairs, 2):
            kinds = {(at, at): alone[0], (at + 1, at + 1): alone[1]}
            kinds[at, at + 1] = alone[0]  # it writes what the ReLU would have read
            for (first, last), one_s in kinds.items():
                own = {"name": f"{name} {first}-{last}", "first": first, "last": last}
                own |= {"reads": name, "writes": name, "times_s": [1e-3] + 3 * [one_s]}
                tactics.append(own)
    return tactics


# %%
with requires_solution("fuse_and_tune"), reveal_prediction("engine") as truth:
    tactics = engine_tactics(4)
    reformat_s = [0.75 * took["relu"]] * 9  # reads two bytes, writes one
    chosen = fuse_and_tune(8, tactics, reformat_s, given="fp16", wanted="fp16")
    time_s = {one["name"]: typical_s(one["times_s"]) for one in tactics}
    kernels_s = sum(time_s[name] for name in chosen)
    converted = any(name.startswith("int8") for name in chosen)
    engine_s = kernels_s + 2 * converted * reformat_s[0]
    print("modelled:", ", ".join(chosen), f"and {2 * converted} conversions")
    truth(4 * (took["conv"] + took["relu"]) / engine_s)

# %% [markdown]
# Fusion saves the ReLUs' kernels, and int8 halves the remaining time. But each change of format is a kernel that
# computes nothing: two of them are expensive for one layer and cheap for a long chain of layers. So the fastest tactic
# for each layer does not give the fastest engine, and a layer without an int8 tactic costs more than its own time,
# because it adds conversions.

# %% [markdown]
# ## Where you are

# %%
Progress("lab09_inference")
