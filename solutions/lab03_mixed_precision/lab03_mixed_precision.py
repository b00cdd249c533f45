# %% [markdown]
# # Mixed precision: numbers in few bits
#
# Half the bits mean half the bytes to move and, on tensor cores, many times the arithmetic per second. The price is
# easy to miss: values become zero, sums stop growing, and a training run reports a loss but learns nothing.
#
# After this lab you can
#
# * read and write any floating-point format by hand;
# * add many small numbers in few bits without losing them;
# * say in which dtype an operator runs under autocast, on CPU and on CUDA, and where the two differ;
# * build the loss scaler that you have only imported so far, and use it to train a network that fp16 alone cannot
#   train;
# * predict whether mixed precision makes a model faster;
# * explain why two lecture decks count different numbers of bytes for a training run.
#
# **About 241 minutes (estimated)**, in two sittings: the first ends with section 5. Practice carries no points. It
# takes another 113 minutes (estimated), and its sections can be done in any order. There you find the limits of a
# format, compute a scale from a histogram, and fix the usual bugs around a scaler. Section 13 looks at eight bits,
# and has nothing to write.
#
# | exercise | section | minutes |
# |---|---|---|
# | `encode_decode` | 1 | 35 |
# | `accumulate_sum` | 2 | 23 |
# | `autocast_dtype` | 3 | 22 |
# | `dynamic_scale` | 5 | 43 |
# | `train_it` | 6 | 27 |
# | `aligned_shapes` | 7 | 25 |
# | `when_amp_helps` | 8 | 36 |
# | `bytes_per_parameter` | 9 | 30 |
#
# | practice | `where_it_breaks` | `static_scale` | `bug_hunt` |
# |---|---|---|---|
# | section | 10 | 11 | 12 |
# | minutes | 28 | 30 | 55 |
#
# No GPU is needed: rounding one number gives the same bits on a laptop and on a GPU (long sums differ, since they are
# added in a different order). A cell that benefits from CUDA uses it if it is available. Otherwise it shows numbers
# that do not come from your machine, and names their source. In each section, *write your prediction down* before you
# run the next cell. If there is a box, enter your prediction (a number with or without its unit) and press Enter.
# Only then does the result appear next to it. Slides are cited by their deck: [000] optimizing training pipelines,
# [002] software perspective, [003] performance and profiling. Stuck? `hint("encode_decode")` gives hints for that
# exercise, one at a time, each more explicit than the one before; every exercise has some.
#
# A check that fails shows the first wrong case, with what your code returned; `case("encode_decode")` gives that case's
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
steps = 120
matrix = 4096

# %% given
import itertools
import math

import torch

from edl_labs import units
from edl_labs.clock import clock_for
from edl_labs.device import best_device, describe, torch_threads
from edl_labs.numerics import BF16, E4M3FN, E5M2, FP16, FP32, underflow_report
from edl_labs.plots import style

FP16_FORMAT = {
    "name": "fp16",
    "exponent_bits": 5,
    "mantissa_bits": 10,
    "bias": 15,
    "has_inf": True,
    "rounding": "nearest",
}
BF16_FORMAT = {
    "name": "bf16",
    "exponent_bits": 8,
    "mantissa_bits": 7,
    "bias": 127,
    "has_inf": True,
    "rounding": "nearest",
}

# %%
Progress("lab03_mixed_precision")

# %% [markdown]
# ## 1. A number is a pattern of bits
#
# Deck [000] writes FP32 as $(-1)^{s}\cdot 2^{E-127}\cdot(1+\sum_{i} b_{23-i}2^{-i})$. Every format in this lab uses
# that formula with different sizes: a sign bit, an *exponent field* $E$ and a *mantissa field*. The exponent field sets
# the range, and the mantissa field sets the spacing within it.
#
# **Predict:** fp16 has 5 exponent and 10 mantissa bits, bf16 has 8 and 7. Which of them can represent 70000? Which
# can represent 257? What is the next number after 1 in bf16? Then click on bits in the explorer (a printed page shows
# one setting).

# %%
formats = ("fp16", "bf16", "both", "neither")
predict("holds_70000", "70000 can be represented, within 1 %, in", choices=formats)
predict("holds_257", "257 can be represented exactly in", choices=formats)
predict("after_one", "In bf16, the number after 1 is", unit="1")

# %%
from edl_labs.ui.number_format_widgets import FormatExplorer

FormatExplorer("fp16")

# %% [markdown]
# Now write this as code. The formula on the slide leaves out these rules:
#
# * With exponent field 0 there is no leading 1: the value is $2^{1-\text{bias}}\cdot$ mantissa$/2^m$. These are the
#   *subnormals*, evenly spaced down to zero. Without them there would be a gap between zero and the smallest normal
#   number.
# * If `has_inf`, the largest exponent field is reserved: with mantissa 0 it is infinity, with any other mantissa NaN.
#   If not (e4m3fn), only the pattern with *all* bits of exponent and mantissa set is NaN, and there is no infinity.
# * Rounding is to the **nearest** number, and a tie goes to the neighbour whose last bit is 0. Some hardware truncates
#   instead, which is cheaper: `"rounding"` is `"nearest"` or `"zero"` (toward zero).
# * A value that rounds beyond the largest number of the format becomes infinity, or NaN if there is no infinity. With
#   rounding toward zero, a finite value never becomes infinity: it becomes the largest number.
#
# Write `decode(code, fmt)`, which returns the float that an integer `code` represents, and `encode(value, fmt)`, which
# returns the code of a float. `fmt` is a dict: `exponent_bits`, `mantissa_bits`, `bias`, `has_inf`, `rounding`. The
# sign is the bit above the exponent field. Encode NaN as the pattern of all ones (either sign). Encode infinity as
# infinity, or as NaN if the format has no infinity. Keep the sign of `-0.0` in both `encode` and `decode`.
#
# `math.frexp`, `math.ldexp` and `round`, which rounds ties to even, are all that you need. The cell already splits a
# code into fields, and handles the sign and, in `encode`, infinity and NaN. You write the formula with its special
# cases, and the rounding. `FloatFormat` from `edl_labs.numerics` does the same for whole arrays, but never truncates.
# Compare with it, but write your own.


# %% solve="encode_decode"
def decode(code, fmt):
    """The float that the bit pattern `code` represents."""
    # top: the largest exponent field
    m, top = fmt["mantissa_bits"], 2 ** fmt["exponent_bits"] - 1
    negative, field, mantissa = code >> m > top, (code >> m) & top, code & (2**m - 1)
    ### BEGIN SOLUTION
    if field == top and (fmt["has_inf"] or mantissa == 2**m - 1):
        size = math.inf if fmt["has_inf"] and mantissa == 0 else math.nan
    else:
        hidden = 2**m if field else 0
        size = math.ldexp(hidden + mantissa, max(field, 1) - fmt["bias"] - m)
    return -size if negative else size
    ### END SOLUTION


def encode(value, fmt):
    """The bit pattern of the number to which the format rounds `value`."""
    m, top = fmt["mantissa_bits"], 2 ** fmt["exponent_bits"] - 1
    nan = (top << m) + 2**m - 1
    # Also the first code that is no finite number.
    too_large = top << m if fmt["has_inf"] else nan
    sign = 1 << (fmt["exponent_bits"] + m) if math.copysign(1, value) < 0 else 0
    if math.isnan(value) or math.isinf(value):
        return sign | (nan if math.isnan(value) else too_large)
    ### BEGIN SOLUTION
    lowest = 1 - fmt["bias"]
    exponent = max(math.frexp(value)[1] - 1, lowest) if value else lowest
    whole_steps = (round if fmt["rounding"] == "nearest" else math.floor)(
        abs(value) / 2.0 ** (exponent - m)
    )
    # A carry moves into the exponent by itself.
    code = whole_steps + ((exponent + fmt["bias"] - 1) << m)
    if code >= too_large:
        code = too_large if fmt["rounding"] == "nearest" else too_large - 1
    return sign | code
    ### END SOLUTION


# %% check="encode_decode"
check("encode_decode")


# %%
def holding(value, within):
    """Which of the two formats can represent `value`, within a share of it."""
    near = []
    for fmt in (FP16_FORMAT, BF16_FORMAT):
        back = decode(encode(value, fmt), fmt)
        near.append(abs(back - value) <= within * value)
    return {(1, 1): "both", (1, 0): "fp16", (0, 1): "bf16", (0, 0): "neither"}[*near]


# %%
asked = ("holds_70000", "holds_257", "after_one")
with requires_solution("encode_decode"), reveal_prediction(*asked) as truth:
    for value in (70000.0, 257.0, 0.1, 1e-8):
        kept = [decode(encode(value, fmt), fmt) for fmt in (FP16_FORMAT, BF16_FORMAT)]
        print(f"{value:g} is {kept[0]:g} in fp16 and {kept[1]:g} in bf16")
    after_one = decode(encode(1.0, BF16_FORMAT) + 1, BF16_FORMAT)
    found = {"holds_70000": holding(70000.0, 0.01), "holds_257": holding(257.0, 0)}
    print("bf16 reaches as far as fp32; fp16 is eight times as fine")
    truth(**found, after_one=after_one)

# %% [markdown]
# Look at the line for 1e-8. Gradients of this size are common, and that line is the reason for the rest of this lab.
# The next cell draws the ranges of the formats. **Predict:** which part of fp32's range does fp16 not cover?

# %%
ends_of_range = ("small values", "large values", "both ends", "neither end")
predict("unseen", "Of fp32's normal range, fp16 does not cover", choices=ends_of_range)

# %%
from edl_labs.plots.number_formats import draw_ranges

with reveal_prediction("unseen") as truth:
    figure, axes = style.subplots(figsize=(9, 2.8))
    axes = draw_ranges(axes, [FP32, BF16, FP16, E5M2, E4M3FN])
    truth("both ends")

# %% [markdown]
# ## 2. A sum that stops growing
#
# Add 0.01 a thousand times. **Predict** what you get when every intermediate sum is rounded to fp16, and to bf16: a bit
# less than 10, a bit more, or something else?

# %%
predict("sum_fp16", "In fp16 the sum ends at", unit="1")
predict("sum_bf16", "In bf16 the sum ends at", unit="1")


# %% given
class Low:
    """A number of a short format. It supports `+`, `-` (with a plain
    number, too) and `float()`; each result is rounded at once."""

    def __init__(self, value, fmt):
        self.value, self.fmt = fmt.round(float(value)), fmt

    def __add__(self, other):
        return Low(self.value + float(other), self.fmt)

    def __sub__(self, other):
        return Low(self.value - float(other), self.fmt)

    def __rsub__(self, other):
        return Low(float(other) - self.value, self.fmt)

    __radd__ = __add__

    def __float__(self):
        return self.value

    def __eq__(self, other):
        return self.value == float(other)


# %%
sums = {}
for fmt in (FP32, FP16, BF16):
    partial = itertools.accumulate([Low(0.01, fmt)] * 1000)
    sums[fmt.name] = list(map(float, partial))
with reveal_prediction("sum_fp16", "sum_bf16") as truth:
    print(", ".join(f"{name}: {path[-1]:.4g}" for name, path in sums.items()))
    figure, axes = style.subplots(figsize=(9, 3))
    for (name, path), line in zip(sums.items(), ("-", "--", "-."), strict=True):
        axes.plot(range(1, 1001), path, line, label=f"{name}: {path[-1]:.4g}")
    axes.set(xlabel="values added", ylabel="sum", title="0.01, a thousand times")
    legend = axes.legend(frameon=False)
    truth(sum_fp16=sums["fp16"][-1], sum_bf16=sums["bf16"][-1])

# %% [markdown]
# A sum stops growing once the distance between neighbouring numbers is more than twice the added value: the addition
# then changes nothing. If you begin at 100 instead of 0, the sum does not change at all in either format. The same
# happens to an optimizer in pure bf16 when it adds `lr * gradient` to a weight: small updates vanish. It is also why
# tensor cores multiply in fp16 and *add in fp32*.
#
# Now do it without a wider accumulator. Write `sum_low(values)`. The values are positive numbers of a type like the
# class `Low` above. They support `+` and `-` with each other and with a plain 0 as the start (the check accepts no
# other plain number). Each result is rounded to their format at once. Return the sum of all values, as such a number.
# Its relative error may be at most four times the format's own rounding, $2^{-(m+1)}$ with $m$ mantissa bits, and you
# may use up to eight operations for each value. You may use `float()` to look, but not to add. The check records your
# additions, replays them in formats of its own, and tests that each value reaches the sum. In some cases, all values
# round in the same direction. Two ideas work: either never let a partial sum grow much larger than the value that is
# added to it, or compute what an addition lost, and correct the next value by that amount (Kahan).


# %% solve="accumulate_sum"
def sum_low(values):
    """The sum of numbers of a short format, as a number of that format."""
    ### BEGIN SOLUTION
    total, surplus = values[0], values[0] - values[0]
    for value in values[1:]:
        owed = value - surplus
        longer = total + owed
        surplus = (longer - total) - owed
        total = longer
    return total
    ### END SOLUTION


# %% check="accumulate_sum"
check("accumulate_sum")

# %%
with requires_solution("accumulate_sum"):
    for fmt in (FP16, BF16):
        numbers = [Low(0.01, fmt) for _ in range(1000)]
        print(
            f"{fmt.name}: one after another {float(sum(numbers)):.4g}, "
            f"yours {float(sum_low(numbers)):.4g}"
        )

# %% [markdown]
# Both sums are now as accurate as their format allows. What remains is the error of 0.01 itself, which bf16 cannot
# represent exactly.

# %% [markdown]
# ## 3. What autocast does
#
# > **cast**: to store the same number in another dtype. **operator**: one function of torch, such as a product or a
# > sum.
#
# `torch.autocast` keeps your weights in fp32 and decides operator by operator. Deck [000] says that matrix products can
# work in few bits, but "others (softmax, batch normalization) need higher precision". **Predict:** for each layer of
# the network in the next cell, is the result in float32 or in the short type, and is it the same on CPU and on CUDA? No
# GPU is needed to find out what CUDA does: the operators run on tensors with a shape, a device and a dtype, but without
# data.

# %%
types = ("bf16", "fp32")
predict("norm_cuda", "On CUDA, LayerNorm's result is in", choices=types)
predict("norm_cpu", "On a CPU, LayerNorm's result is in", choices=types)

# %%
from edl_labs.numerics import autocast_differences, autocast_table

nn = torch.nn
steps_of_block = [nn.Linear(32, 32), nn.LayerNorm(32), nn.Linear(32, 32)]
steps_of_block += [nn.BatchNorm1d(32), nn.GELU(), nn.Linear(32, 32), nn.ReLU()]
block = nn.Sequential(*steps_of_block, nn.Linear(32, 32), nn.Softmax(-1))
given, bf16 = torch.randn(8, 32), {"dtype": torch.bfloat16}

# %%
with reveal_prediction("norm_cuda", "norm_cpu") as truth:
    print(autocast_table(block, given, device_type="cuda", **bf16))
    for difference in autocast_differences(block, given, **bf16):
        print(str(difference).replace(", on CUDA", ",\n    on CUDA"))
    truth(norm_cuda="fp32", norm_cpu="bf16")

# %% [markdown]
# The two devices differ, so a model that you debug on CPU is not the model that you train. And batch normalization,
# which the slide names, returns the dtype of its input on *both*. Only its internal statistics are kept in fp32.
#
# Write `autocast_dtype(op, inputs, device_type=..., dtype=...)`: the dtype of the result, as text and in full:
# `"float16"`, `"bfloat16"`, `"float32"` or `"float64"` (not `"fp32"`, not `"torch.float32"`). `inputs` contains one
# dtype, or two for operators that take two tensors (for linear, these are its input and its weight); `dtype` is the
# short type that autocast casts to. Every operator belongs to one of three kinds: **short** (its inputs are cast to
# `dtype`), **float32** (its inputs are cast up), or **not cast** (the result has the wider of two dtypes, as without
# autocast). fp16 with bf16 gives float32, since neither contains the other; the check has no such case. float64 is
# never cast. The operators are:
#
# `linear` `matmul` `conv2d` `scaled_dot_product_attention` · `add` `cat` · `relu` `gelu` `max_pool2d` `batch_norm`
# `layer_norm` `softmax` · `sum` `mean` `exp` · `mse_loss` `cross_entropy`
#
# The table shows GELU, softmax and the norms; where it names no difference, CPU and CUDA agree. It does not show the
# following: on CUDA, `sum` and `exp` are of the float32 kind, and `mean` is not cast. On CPU, all three are not cast.
# Losses are float32 on both. Guessing earns nothing: you get points only if you do better than any single rule for all
# operators, such as "always float32".


# %% solve="autocast_dtype"
def autocast_dtype(op, inputs, *, device_type, dtype):
    """The dtype of an operator's result under autocast to `dtype`, as text."""
    ### BEGIN SOLUTION
    if "float64" in inputs:
        return "float64"
    if op in ("linear", "matmul", "conv2d", "scaled_dot_product_attention"):
        return dtype
    cast_up = ["mse_loss", "cross_entropy"]
    if device_type == "cuda":
        cast_up += ["layer_norm", "softmax", "sum", "exp"]
    return "float32" if op in cast_up or "float32" in inputs else inputs[0]
    ### END SOLUTION


# %% check="autocast_dtype"
check("autocast_dtype")

# %% [markdown]
# ## 4. Gradients that become zero
#
# Deck [002] shows the gradients of a detector trained in fp32, on a logarithmic axis. fp16's range is wide enough for
# all of them, but in the wrong place: *half* of the values become 0. The data of that figure are lost. The figure
# below comes from a small training run on your machine, where a different share of the gradients becomes 0.
# **Predict:** how much is lost without scaling? Does a scale of $2^{16}$ save everything? And which end of the
# histogram is in danger if you continue to $2^{24}$, where the slider ends? The training takes about five seconds,
# and up to a minute on a busy machine.

# %%
predict(
    "lost_unscaled", "Without scaling, the share that becomes 0 in fp16 is", unit="%"
)
predict("lost_scaled", "With a scale of 2^16, that share is", unit="%")

# %%
from edl_labs.numerics import training_gradients
from edl_labs.plots.number_formats import draw_underflow

gradients = training_gradients(seed=0)
with reveal_prediction("lost_unscaled", "lost_scaled") as truth:
    lost = [underflow_report(gradients, FP16, scale=s).flushed for s in (1.0, 2.0**16)]
    print("share of the gradients that becomes 0:", *map(units.percent, lost))
    figure, rows = style.subplots(2, 1, figsize=(9, 4.6), sharex=True)
    for axes, scale in zip(rows, (1.0, 2.0**16), strict=True):
        axes = draw_underflow(axes, underflow_report(gradients, FP16, scale=scale))
    truth(lost_unscaled=lost[0], lost_scaled=lost[1])

# %% [markdown]
# Now move the scale by hand.

# %%
from edl_labs.ui.number_format_widgets import UnderflowSlider

UnderflowSlider(gradients, fmt="fp16", power=8)

# %% [markdown]
# Multiplying by a power of two moves the histogram, and nothing is rounded. And because differentiation is linear, it
# is enough to multiply the *loss*: the chain rule carries the factor to every gradient.
#
# Unscaled, hardly any value is in fp16's normal range. But which power of two is right? Section 5 builds a scaler that
# finds it while the model trains; section 11 (practice) computes it from a histogram.

# %% [markdown]
# ## 5. A scaler that finds the scale itself
#
# Gradients change while a model learns, so the scale has to follow. Deck [000] describes it as follows: scale "by a
# small number", which "can lead to overflows when unscaling", so halve the scale on overflow. Two of these statements
# are wrong. The number is *large* (PyTorch begins at 65536). The overflow happens in the scaled *backward* pass;
# unscaling only finds it. Half of the method is also missing: after a run of clean steps the scale must *grow* again.
#
# **Predict:** you start at $2^{16}$, one step in 100 overflows, and the scale doubles after 2000 clean steps in a row.
# Where does it end up?

# %%
predict("ends_up", "The scale ends up", choices=("lower", "where it began", "higher"))

# %% [markdown]
# Write the class `LossScaler`, with torch's names; you may not use torch's own scaler or its operators.
# `optimizer.param_groups` is a list of dicts; the `"params"` of each dict are weights; `weight.grad` may be `None`.
# `__init__` already sets up the attributes that are kept between calls.
#
# * `scale(loss)` returns the loss times the scale.
# * `unscale_(optimizer)` divides every gradient by the scale, in place, and notices infinity and NaN. A second call in
#   one step would divide twice, so it raises `RuntimeError`.
# * `step(optimizer)` unscales unless `unscale_` has done so, and calls `optimizer.step()` only if every gradient is
#   finite.
# * `update()` is called once after each step. On overflow, it multiplies the scale by `backoff_factor` at once. After
#   `growth_interval` clean steps **in a row**, it multiplies the scale by `growth_factor`, but not beyond `max_scale`,
#   and restarts the count. (torch's scaler has no such limit. The limit of Apex is $2^{24}$, because the scaled loss
#   itself must stay finite.)


# %% solve="dynamic_scale"
class LossScaler:
    """A dynamic loss scale: backs off on overflow, grows after clean steps."""

    def __init__(
        self,
        *,
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        max_scale=math.inf,
    ):
        self.current, self.max_scale = init_scale, max_scale
        self.growth_factor, self.backoff_factor, self.growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self.clean_in_a_row, self.is_unscaled, self.has_overflow = 0, False, False

    def scale(self, loss):
        """The loss times the scale."""
        ### BEGIN SOLUTION
        return loss * self.current
        ### END SOLUTION

    def unscale_(self, optimizer):
        """Divides the gradients by the scale in place; RuntimeError if done already."""
        ### BEGIN SOLUTION
        if self.is_unscaled:
            raise RuntimeError(
                "the gradients are unscaled already; call update() first"
            )
        self.is_unscaled = True
        for group in optimizer.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    weight.grad.div_(self.current)
                    self.has_overflow |= not bool(torch.isfinite(weight.grad).all())
        ### END SOLUTION

    def step(self, optimizer):
        """Lets the optimizer step, with true gradients,
        unless one of them is infinite or NaN."""
        ### BEGIN SOLUTION
        if not self.is_unscaled:
            self.unscale_(optimizer)
        if not self.has_overflow:
            optimizer.step()
        ### END SOLUTION

    def update(self):
        """Adapts the scale to what the step found."""
        ### BEGIN SOLUTION
        self.clean_in_a_row = 0 if self.has_overflow else self.clean_in_a_row + 1
        if self.has_overflow:
            self.current *= self.backoff_factor
        elif self.clean_in_a_row == self.growth_interval:
            self.current, self.clean_in_a_row = (
                min(self.current * self.growth_factor, self.max_scale),
                0,
            )
        self.is_unscaled = self.has_overflow = False
        ### END SOLUTION


# %% check="dynamic_scale"
check("dynamic_scale")

# %% [markdown]
# The next cells compare your scaler with torch's, which on CPU is `torch.amp.GradScaler("cpu")`. (Without a GPU, the
# old `torch.cuda.amp.GradScaler()` warns and *switches itself off*, so a test of your loop would test nothing.)


# %%
with reveal_prediction("ends_up") as truth:
    print("there are never 2000 clean steps in a row: it is halved again and again,")
    print("until overflows become rarer")
    truth("lower")


# %%
def scales_of(scaler):
    """The scale before each of 200 steps; the gradient grows from 2 to 5."""
    weight, scales = torch.nn.Parameter(torch.ones(1)), []
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    for number in range(200):
        scales.append(float(scaler.scale(torch.tensor(1.0))))
        gradient = torch.tensor([5.0 if number > 90 else 2.0]) * scales[-1]
        weight.grad = gradient.half().float()
        scaler.step(optimizer)
        scaler.update()
    return scales


# %%
with requires_solution("dynamic_scale"):
    yours = scales_of(LossScaler(growth_interval=20))
    torchs = scales_of(torch.amp.GradScaler("cpu", growth_interval=20))
    figure, axes = style.subplots(figsize=(9, 2.8))
    axes.step(range(200), yours, "-", label="yours")
    axes.step(range(200), torchs, ":", label="torch")
    axes.set_yscale("log", base=2)
    axes.set(xlabel="step", ylabel="scale", title="the gradient grows at step 91")
    legend = axes.legend(frameon=False)

# %% [markdown]
# Each tooth is an attempt to grow: the scale doubles, overflows, and falls back at the price of one skipped step. With
# torch's interval of 2000, that is one step in two thousand.

# %% [markdown]
# ## 6. Train it
#
# Now put everything together. The network below has fp32 weights, but every activation and every gradient between its
# layers is rounded to fp16. Its loss is multiplied by a small weight, as an auxiliary loss is. **Predict:** what does
# its loss curve look like without scaling? And what does it look like with your scaler, if the scale starts at an
# absurd $2^{60}$?

# %%
curve = ("it falls as in fp32", "it falls slowly", "it stays flat", "it becomes NaN")
predict("unscaled_curve", "Without scaling,", choices=curve)
predict("absurd_start", "With the scaler, in the end,", choices=curve)


# %% given
class Short(torch.autograd.Function):
    """Rounds to fp16 on the way forward and on the way back."""

    @staticmethod
    def forward(ctx, x):
        return x.half().float()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.half().float()


class ShortNetwork(torch.nn.Module):
    """Two layers, with fp16 between them. `loss(x, y)` is
    the mean square error times a small weight."""

    def __init__(self, *, loss_weight, through=Short.apply):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 16), torch.nn.Linear(16, 4)
        self.loss_weight, self.through = loss_weight, through

    def forward(self, x):
        hidden = torch.tanh(self.through(self.first(self.through(x))))
        return self.through(self.last(self.through(hidden)))

    def loss(self, x, y):
        return self.loss_weight * (self(x) - y).square().mean()


class NoScaler:
    """Has the methods of a scaler, but scales nothing."""

    def scale(self, loss):
        return loss

    def step(self, optimizer):
        optimizer.step()

    def update(self):
        pass


# %% [markdown]
# Write `train_in_half(model, batches, optimizer, scaler)`: it takes one step for each `(x, y)` in `batches`, on
# `model.loss(x, y)`, with a scaler like yours (its `step` unscales). It returns the list of losses, one for each batch,
# *not* scaled and not weighted: `loss / model.loss_weight` as a float. The check trains a network like this one with
# your `LossScaler`, in fp16 and in fp32. The two losses on new data must agree within 2 %.


# %% solve="train_it"
def train_in_half(model, batches, optimizer, scaler):
    """Trains on every batch once; returns the losses, unscaled and unweighted."""
    ### BEGIN SOLUTION
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = model.loss(x, y)
        losses.append(loss.item() / model.loss_weight)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return losses
    ### END SOLUTION


# %% check="train_it"
check("train_it")

# %%
loss_weight = 2.0**-23
with torch.random.fork_rng():
    torch.manual_seed(0)
    teacher = torch.randn(6, 4)
    batches = [(x, torch.sin(x @ teacher)) for x in torch.randn(steps, 32, 6)]
    start = ShortNetwork(loss_weight=loss_weight).state_dict()


# %%
def losses_and_scales(through, scaler):
    """The loss of each step from the same start, and the scale before each."""
    network, scales = ShortNetwork(loss_weight=loss_weight, through=through), []
    network.load_state_dict(start)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.15 / loss_weight)

    def watched():
        for batch in batches:
            scales.append(getattr(scaler, "current", 1.0))
            yield batch

    return train_in_half(network, watched(), optimizer, scaler), scales


# %%
# Products this small are slower, and on a busy machine much slower, with more threads.
curves = {}  # the losses by name
with requires_solution("train_it"), torch_threads(1):
    curves["fp32"], _ = losses_and_scales(lambda x: x, NoScaler())
    curves["fp16, no scaling"], _ = losses_and_scales(Short.apply, NoScaler())
    yours = LossScaler(init_scale=2.0**60, growth_interval=30)
    curves["fp16, your scaler"], own = losses_and_scales(Short.apply, yours)


# %%
def draw_losses(axes, losses, line, *, name):
    """One curve, smoothed over ten steps."""
    smooth = torch.tensor(losses).unfold(0, min(10, len(losses)), 1).mean(1)
    last_steps = range(len(losses) - len(smooth), len(losses))
    axes.plot(last_steps, smooth, line, label=f"{name}: {smooth[-1]:.3f}")


# %%
with (
    requires_solution("train_it"),
    reveal_prediction("unscaled_curve", "absurd_start") as truth,
):
    if len(curves) < 3:
        raise NotImplementedError("the cell above has not trained all three nets yet")
    truth(unscaled_curve="it stays flat", absurd_start="it falls as in fp32")
    figure, (axes, below) = style.subplots(2, 1, figsize=(9, 5), sharex=True)
    for (name, losses), line in zip(curves.items(), ("-", "--", ":"), strict=True):
        draw_losses(axes, losses, line, name=name)
    axes.set(ylabel="loss, mean of 10 steps", title="same network, same batches")
    below.step(range(len(own)), own, where="post")
    below.set_yscale("log", base=2)
    below.set(xlabel="step", ylabel="your scale")
    legend = axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))

# %% [markdown]
# Nothing warns you when gradients vanish: you see no NaN and no error. Your scaler spends its first steps coming down
# from $2^{60}$. Later it loses a step now and then when it tries the next power of two (see the lower picture). bf16
# would not have needed any of this: it has the range of fp32, which is why most large models are trained in it. You
# saw its price in section 2.

# %% [markdown]
# ## 7. Shapes that tensor cores like
#
# "You do not specify their usage manually!", deck [000] says about tensor cores: the library decides, based on dtype
# and shape. Decks [000] and [002] have tables, and each table follows one rule. With older libraries (cuBLAS before 11,
# cuDNN before 7.6.3), rows must be whole multiples of **16 bytes** for tensor cores to be used at all. On an A100 and
# later, multiples of **128 bytes** are fastest. For fp16, these are 8 and 64 elements. **Predict** the two multiples,
# in elements, for int8, TF32 (its elements are stored in 32 bits) and fp64. And what would you do with a vocabulary of
# 33708 words in fp16?

# %%
predict("int8_rule", "On an A100, int8 is fastest in multiples of", unit="elements")
predict("fp64_rule", "On an A100, fp64 is fastest in multiples of", unit="elements")
predict("padded_to", "The 33708 words are best padded to", unit="words")

# %% [markdown]
# Write two functions. A matrix product has a `shape` `[m, k, n]`. It obeys a rule if all three sides do.
#
# * `alignment(shape, bits)` returns the strictest rule that the product obeys, `"128 B"`, `"16 B"` or `"none"`, for
#   elements of `bits` bits.
# * `best_padding(shape, bits, rates=...)` returns the padded `[m, k, n]` that takes the least time. `rates` maps each
#   of the three results of `alignment` to the FLOP/s of such a product. Each side may stay as it is or be rounded up
#   to the next multiple that either rule asks for. Padding is work, too: count it.
#
# You may call `alignment` from `edl_labs.numerics`, which looks at one rule at a time.


# %% solve="aligned_shapes"
def alignment(shape, bits):
    """The strictest rule that all sides obey: "128 B", "16 B" or "none"."""
    ### BEGIN SOLUTION
    for rule_bytes in (128, 16):
        if all(side * bits % (8 * rule_bytes) == 0 for side in shape):
            return f"{rule_bytes} B"
    return "none"
    ### END SOLUTION


def best_padding(shape, bits, *, rates):
    """[m, k, n], padded such that the product takes the least time."""
    ### BEGIN SOLUTION
    multiples = (1, 128 // bits, 1024 // bits)
    choices = itertools.product(
        *([-(-side // multiple) * multiple for multiple in multiples] for side in shape)
    )
    return list(
        min(choices, key=lambda sides: math.prod(sides) / rates[alignment(sides, bits)])
    )
    ### END SOLUTION


# %% check="aligned_shapes"
check("aligned_shapes")

# %%
asked = ("int8_rule", "fp64_rule", "padded_to")
with requires_solution("aligned_shapes"), reveal_prediction(*asked) as truth:
    for bits, name in ((8, "int8"), (16, "fp16"), (32, "TF32"), (64, "fp64")):
        print(
            f"{name}: multiples of {128 // bits}, "
            f"on an A100 and later of {1024 // bits}"
        )
    rates = {"none": 120e12, "16 B": 230e12, "128 B": 300e12}
    shape = [5120, 1024, 33708]
    padded = best_padding(shape, 16, rates=rates)
    print(shape, "is aligned to", alignment(shape, 16), "and best padded to", padded)
    print("20 more words are 0.06 % more work")
    truth(int8_rule=1024 // 8, fp64_rule=1024 // 64, padded_to=padded[2])

# %% [markdown]
# (The rates are invented; section 8 measures some if it can.) Deck [002] gives three more multiples for fp16. A
# sequence's length should be a multiple of 16 and a mini-batch a multiple of 8; the mini-batch also matters for a
# weight's gradient, a product in which the batch is k. For an A100, the deck gives multiples of 64. The first two
# satisfy the rule of 16 bytes; only the third is the rule of 128 bytes. The deck's multiples of 16 channels in fp16
# and 32 in int8 are 32 bytes each. With newer libraries the slowdown is gradual: unaligned products use tensor cores,
# too, but run slower. The next cell shows your own rates if you have recorded some on a GPU: run
# `edl-labs record --mine` there, and put the folder `my_recordings` next to this notebook.

# %%
from edl_labs.bench import measured_here

print(measured_here("aligned_products"))

# %% [markdown]
# ## 8. When it does not help
#
# Deck [003] shows how to convert to fp16 with an example: a linear layer from 1024 to 512 features and a batch of 64.
# It promises 1.5× to 5×. **Predict** the speed-up of this example: count its arithmetic, count its bytes, and compare
# both with the 5 µs that launching a kernel takes.

# %%
predict("half_gain", "On a V100, fp16 makes the example faster by", unit="times")

# %%
from edl_labs.hardware import accelerator

chip, (m, k, n) = accelerator("V100"), (64, 1024, 512)
with reveal_prediction("half_gain") as truth:
    bounds_s, launch_s = {}, 5e-6
    for name, size in (("fp32", 4), ("fp16", 2)):
        compute_s = 2 * m * k * n / chip.peak_flop_per_s(name)
        memory_s = size * (m * k + k * n + m * n) / chip.memory_bandwidth_byte_per_s
        bounds_s[name] = max(compute_s, memory_s, launch_s)
        times = map(units.seconds, (compute_s, memory_s, launch_s))
        told = "arithmetic {}, memory {}, launch about {}".format(*times)
        print(f"computed, {name}: {told}")
    print("every bound is below the launch time")
    truth(bounds_s["fp32"] / bounds_s["fp16"])

# %% [markdown]
# If the launch from Python sets the time, fewer bytes do not make a kernel faster. And autocast adds casts, which are
# kernels, too. `amp_report` makes this prediction for a whole model from its shapes, then measures what this machine
# can measure.

# %%
from edl_labs.numerics import amp_report

machine = None if best_device() == "cuda" else "A100-80GB"
large = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(4)))
for model, shape in ((torch.nn.Linear(1024, 512), (64, 1024)), (large, (2048, 4096))):
    model, x = (
        (model.cuda(), torch.randn(shape).cuda())
        if machine is None
        else (model, torch.empty(shape))
    )
    print(amp_report(model, x, machine=machine), end="\n\n")

# %% [markdown]
# Why does the prediction for the large model exceed 10×, when the slide says 1.5× to 5×? The prediction is a ceiling:
# it assumes the peak rate for every product, and compares it with fp32 on CUDA cores (on an A100, 312 against 19.5
# TFLOP/s, a ratio of 16). Real products reach only a part of the peak. Memory-bound operators gain a factor of two at
# most. If fp32 already runs as TF32, the ratio of the peaks is 2. The slide's numbers are for whole models in
# practice, but its own example gains nothing.
#
# Now ask the same question on this machine. Without a GPU, the next cells measure bf16 on the processor. **Predict:**
# does a laptop or a server gain from bf16?

# %%
predict("bf16_here", "On this machine, the short type is", choices=("faster", "slower"))

# %%
layer = torch.nn.Linear(512, 512)
if best_device() == "cuda":
    layer, features = layer.cuda(), torch.randn(256, 512, device="cuda")
else:
    features = torch.randn(256, 512)

# %%
with reveal_prediction("bf16_here"):
    print(amp_report(layer, features, budget_s=0.5))
    print("Servers with AMX or AVX-512 BF16 and recent Arm chips multiply bf16 in")
    print("hardware. Most laptops convert to fp32 and back, and are often slower.")

# %% [markdown]
# On a CPU, the gain depends on its instructions. If the speed-up above was measured on a CPU and the result is clear,
# it shows whether your CPU has fast instructions for bf16. (Deck [000] lists bf16, `Tensor.bfloat16()`, for use "on
# CPUs and TPUs": TPUs use it by default, and GPUs have had it since Ampere. fp16, `Tensor.half()`, came to GPUs with
# CUDA 8.)
#
# The next cells show the ceiling itself: the time of a large product in each dtype. It is measured if there is CUDA;
# otherwise it is the time that an H200 would need at its datasheet's peak.


# %% given
def product_s(name, size, *, calls=20):
    """Seconds of a product of two matrices of `size` rows on this GPU."""
    clock, before = clock_for("cuda"), torch.backends.cuda.matmul.allow_tf32
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(name, torch.float32)
    a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        a @ b
        clock.synchronize()
        start_s = clock.now_s()
        for _ in range(calls):
            a @ b
        clock.synchronize()
        return (clock.now_s() - start_s) / calls
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


# %%
on_gpu, h200 = best_device() == "cuda", accelerator("H200")
print(
    f"measured on {describe().device_name}"
    if on_gpu
    else "modelled, not measured: an H200 at its peak"
)
for name in ("fp32", "tf32", "fp16", "bf16", "fp8"):
    if on_gpu and name == "fp8":
        continue  # torch has no operator for it that is the same on every chip
    time_s = (
        product_s(name, matrix)
        if on_gpu
        else 2 * matrix**3 / h200.peak_flop_per_s(name)
    )
    print(f"{name}: {units.seconds(time_s)}, {units.flop_rate(2 * matrix**3 / time_s)}")

# %% [markdown]
# TF32 is the row that people forget. If fp32 products already run as TF32, mixed precision can gain at most a factor
# of two, and only on products. By default, PyTorch uses TF32 for convolutions, but not for products (before version
# 1.12, it used TF32 for both). Deck [002] sets only the switch for cuDNN. In the NGC containers that the deck
# mentions, TF32 is on for both:

# %%
from edl_labs.numerics import tensor_core_kernel, tf32_state

print(tf32_state())
kernels = (
    "ampere_fp16_s16816gemm_fp16_128x128",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT",
    "ampere_sgemm_128x64_nn",
)
for kernel in map(tensor_core_kernel, kernels):
    print(
        f"{kernel.name}: on tensor cores {kernel.tensor_core}, "
        f"according to the deck {kernel.deck_says}"
    )

# %% [markdown]
# The deck recognizes tensor-core kernels by a pattern in their names: one of the letters i, s and h, followed by
# digits. It matches the first name, but misses the second, which is the one that a Hopper GPU runs.

# %% [markdown] explain="when_amp_helps"
# **Explain (read by your instructor).** Choose a model of yours, or one of the two above, and a GPU. Predict whether
# mixed precision makes its training step faster, and by how much, from its shapes: what bounds the step, which part of
# it autocast touches, whether the shapes are aligned, and what fp32 already uses (TF32?). Then measure it, here or
# where you have a GPU, or take the figures above, and explain the difference between prediction and measurement. Five
# to eight sentences. Name two situations in which AMP gives no speed-up at all.

# %% [markdown]
# ## 9. What does a parameter cost?
#
# For mixed precision with Adam, deck [000] counts **16** bytes per parameter, the same as fp32, and deck [002] counts
# **18**. **Predict** which deck is right, and what PyTorch does.

# %%
predict(
    "autocast_keeps", "With autocast and Adam, PyTorch keeps per parameter", unit="B"
)

# %% [markdown]
# The parts, in bytes:
#
# | `precision` | weights | master copy | gradients | each optimizer state | temporary copy |
# |---|---|---|---|---|---|
# | `"fp32"` | 4 | | 4 | 4 | |
# | `"deck 000"` | 2 | 4 | 2 | 4 | |
# | `"deck 002"` | 2 | 4 | 4 | 4 | |
# | `"autocast"` (PyTorch) | 4 | | 4 | 4 | 2 |
# | `"bf16"` (all of it) | 2 | | 2 | 2 | |
#
# `"adam"` keeps two states, `"momentum"` one, and `"sgd"` none. `"adam 8 bit"` keeps two of one byte each, in every
# precision. ZeRO splits parts evenly over `gpus`: stage 1 splits the optimizer's states and the master copy, stage 2
# also the gradients, and stage 3 also the weights. With `offload`, states and master copy are in the host's memory. The
# temporary copy is never split. Often only a share of the weights is `trained` (an adapter, the last layers). The
# others need no gradients, no states and no master copy, but autocast still copies them.
#
# Write `bytes_per_parameter(recipe)`, which returns `(resident, peak)` for one GPU: the bytes that are always in
# memory, and these plus the temporary copy. A recipe is a dict: `{"precision": "fp32", "optimizer": "adam",
# "zero_stage": 0, "gpus": 1, "offload": False, "trained": 1.0}`.


# %% solve="bytes_per_parameter"
def bytes_per_parameter(recipe):
    """(resident, peak) bytes for each parameter on each GPU."""
    ### BEGIN SOLUTION
    weights, master, gradients, state, passing = {
        "fp32": (4, 0, 4, 4, 0),
        "deck 000": (2, 4, 2, 4, 0),
        "deck 002": (2, 4, 4, 4, 0),
        "autocast": (4, 0, 4, 4, 2),
        "bf16": (2, 0, 2, 2, 0),
    }[recipe["precision"]]
    states = {"sgd": 0, "momentum": state, "adam": 2 * state, "adam 8 bit": 2}[
        recipe["optimizer"]
    ]
    kept = 0 if recipe["offload"] else master + states
    parts = [recipe["trained"] * kept, recipe["trained"] * gradients, weights]
    split_parts = recipe["zero_stage"]
    resident = sum(parts[:split_parts]) / recipe["gpus"] + sum(parts[split_parts:])
    return resident, resident + passing
    ### END SOLUTION


# %% check="bytes_per_parameter"
check("bytes_per_parameter")

# %%
with (
    requires_solution("bytes_per_parameter"),
    reveal_prediction("autocast_keeps") as truth,
):
    recipe = {"optimizer": "adam", "zero_stage": 0, "gpus": 1, "trained": 1.0}
    recipe["offload"] = False
    for precision in ("fp32", "deck 000", "deck 002", "autocast", "bf16"):
        resident, peak = bytes_per_parameter({**recipe, "precision": precision})
        size = units.byte_count(7e9 * resident)
        told = f"{resident:g} bytes, {peak:g} at the peak"
        print(f"{precision:>9}: {told}; 7 billion parameters: {size}")
        if precision == "autocast":
            truth(resident)
    print("autocast keeps no short copy: up to 2 bytes exist only during a step")

# %% [markdown]
# Both decks are right, but for different designs: deck [002] keeps gradients in fp32, deck [000] in fp16. PyTorch's
# autocast casts weights when an operator needs them, and drops the copies after the backward pass. No *mixed* version
# makes the model's state smaller; bf16 for everything halves this state, at the price that section 2 showed. Deck
# [000]'s gradients of two bytes save something else: GPUs that train together sum their gradients over the network in
# each step, which is 14 GB instead of 28 GB for 7 billion parameters. The activations shrink in every version, and you
# can count them on any machine:

# %%
from edl_labs.numerics import saved_activations

network = torch.nn.Sequential(
    *(torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(8))
)
x = torch.randn(2048, 256)
plain = saved_activations(network, x)
with torch.autocast("cpu", dtype=torch.bfloat16):
    short = saved_activations(network, x)
print("fp32:    ", plain)
print("autocast:", short)

# %% [markdown]
# ## 10. Practice: where it breaks
#
# Sections 10 to 13 are practice: they are checked like all the others, but carry no points. Section 13 has nothing to
# write.
#
# According to deck [002], mixed precision "is mostly about the dynamic range and less about the precision". So where
# does the range end? A value half way between two neighbouring numbers of a format is a tie. How ties are rounded
# decides where the format ends.
#
# **Predict** for fp16, whose largest number is 65504: what do 65519 and 65520 become? What is the first whole number
# that fp16 does not have? Which is the largest value that becomes zero: is it $2^{-24}$, the smallest number of the
# format?

# %%
ends = ("65504", "infinity")
predict("becomes_65519", "In fp16, 65519 becomes", choices=ends)
predict("becomes_65520", "In fp16, 65520 becomes", choices=ends)
predict("first_missing", "The first whole number that fp16 does not have is", unit="1")
predict("becomes_zero", "The largest value that becomes 0 is (such as 2^-24)", unit="1")

# %% [markdown]
# Write `where_it_breaks(fmt)` for any format that rounds to nearest. It returns a dict:
#
# | key | value |
# |---|---|
# | `"flushed"` | the largest value that becomes 0 |
# | `"largest"` | the largest number of the format |
# | `"overflows"` | the smallest whole number that becomes infinity or NaN |
# | `"rounded"` | the smallest whole number above 0 that the format does not have |
#
# Use a closed form, or search with your `encode` and `decode`. (In all formats of the check, the largest number is well
# above `"rounded"`.)


# %% solve="where_it_breaks"
def where_it_breaks(fmt):
    """A dict with flushed, largest, overflows and rounded: see the table."""
    ### BEGIN SOLUTION
    m = fmt["mantissa_bits"]
    after_last = (2 ** fmt["exponent_bits"] - 1) * 2**m + (
        0 if fmt["has_inf"] else 2**m - 1
    )
    exponent = (after_last - 1) // 2**m - fmt["bias"]
    largest = (2**m + (after_last - 1) % 2**m) * 2.0 ** (exponent - m)
    tie = largest + 2.0 ** (exponent - m - 1)
    tie_goes_up = after_last % 2 == 0
    return {
        "flushed": 2.0 ** (-fmt["bias"] - m),
        "largest": largest,
        "overflows": tie if tie_goes_up else tie + 1,
        "rounded": 2 ** (m + 1) + 1,
    }
    ### END SOLUTION


# %% check="where_it_breaks"
check("where_it_breaks")

# %%
asked = ("becomes_65519", "becomes_65520", "first_missing", "becomes_zero")
with requires_solution("where_it_breaks"), reveal_prediction(*asked) as truth:
    for fmt in (FP16_FORMAT, BF16_FORMAT):
        breaks = where_it_breaks(fmt).items()
        print(fmt["name"], {name: f"{value:.10g}" for name, value in breaks})
    tried = (2.0**-25, 1.0001 * 2.0**-25, 65519.0, 65520.0, 2049.0)
    in_torch = [float(torch.tensor(x).half()) for x in tried]
    print("torch:", in_torch)
    words = {65504.0: "65504", math.inf: "infinity"}
    fp16_ends = where_it_breaks(FP16_FORMAT)
    truth(becomes_65519=words[in_torch[2]], becomes_65520=words[in_torch[3]])
    truth(first_missing=fp16_ends["rounded"], becomes_zero=fp16_ends["flushed"])
    print("2^-25 and 65520 are ties, and are rounded to the even neighbour")

# %% [markdown]
# Ties decide where a format's range ends. e4m3fn is different: the code of 448 is even, so 464 still becomes 448, and
# 465 becomes NaN by the rules of section 1. (Hardware and libraries may *saturate* instead: torch 2.15 converts 465
# to 448.)

# %% [markdown]
# ## 11. Practice: one scale for a histogram
#
# In section 4 you moved a histogram of gradients by hand. Now compute the scale that it needs.
#
# Write `static_scale(exponents, counts, fmt)`. The histogram says that `counts[i]` values have a magnitude of at least
# $2^{e}$ and less than $2^{e+1}$, with $e$ = `exponents[i]`. Return the **smallest power of two** (it may be below 1)
# at which less than 1 % of the values are flushed. A bin counts as flushed when its lower edge is flushed. If a value
# could overflow at that scale (because the upper edge of a bin that is not empty reaches `"overflows"` of your
# `where_it_breaks`, section 10), no scale is right: raise `ValueError`. The smallest scale is best because it leaves
# the most room for larger values in the next batch.


# %% solve="static_scale"
def static_scale(exponents, counts, fmt):
    """The smallest power of two that flushes less than 1 %, or ValueError."""
    ### BEGIN SOLUTION
    ends, power = where_it_breaks(fmt), -200

    def flushed_share():
        lost = [
            n
            for e, n in zip(exponents, counts, strict=True)
            if 2.0 ** (e + power) <= ends["flushed"]
        ]
        return sum(lost) / sum(counts)

    while flushed_share() >= 0.01:
        power += 1
    if (
        2.0 ** (power + 1 + max(e for e, n in zip(exponents, counts, strict=True) if n))
        >= ends["overflows"]
    ):
        raise ValueError("the values span more than the format")
    return 2.0**power
    ### END SOLUTION


# %% check="static_scale"
check("static_scale")


# %%
def scale_of(values):
    """What static_scale returns for gradients in fp16, as text."""
    histogram = underflow_report(values, FP16)
    exponents, counts = list(histogram.exponents), list(histogram.counts)
    try:
        scale = static_scale(exponents, counts, FP16_FORMAT)
    except ValueError:
        return "none fits"
    return f"2^{math.log2(scale):.0f}"


# %%
with requires_solution("static_scale"):
    sizes = torch.cat([values.abs().flatten() for values in gradients.values()])
    decades = math.log10(sizes.max() / sizes[sizes > 0].min())
    print(
        f"all gradients together: {scale_of(gradients)}; "
        f"largest over smallest: 10^{decades:.0f}"
    )
    by_scale = {}
    for name, values in gradients.items():
        by_scale.setdefault(scale_of(values), []).append(name)
    for scale, names in by_scale.items():
        print(f"{scale:>9}: {', '.join(names)}")

# %% [markdown]
# One scale for all tensors is a compromise, and there may be none that keeps 99 % of the values. The first line of the
# output says how far the smallest gradient is below the largest. The scales of individual tensors are many powers of
# two apart, and some tensors cover too wide a range even on their own. (Training tolerates the loss of the smallest
# gradients, as long as most of them remain.)

# %% [markdown]
# ## 12. Practice: five loops, one fault each
#
# Each loop below runs or almost runs, and each fault has appeared in released code. All except the last use torch's own
# scaler. **Predict** the symptom of each before you fix it: does it crash, learn nothing, learn too slowly, or only
# *look* right?

# %%
predict("crashes", "The number of loops that crash is", unit="loops")


# %% given
mse = torch.nn.functional.mse_loss


def faulty_clipped(model, batches, optimizer, scaler, *, max_norm):
    """Clips gradients to `max_norm`."""
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()


def faulty_logged(model, batches, optimizer, scaler):
    """Returns the norm of the true gradients of each batch."""
    norms = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        for weight in model.parameters():
            weight.grad /= scaler.get_scale()
        gradients = [weight.grad for weight in model.parameters()]
        norms.append(float(torch.nn.utils.get_total_norm(gradients)))
        scaler.step(optimizer)
        scaler.update()
    return norms


def faulty_accumulated(model, batches, optimizer, scaler, *, every):
    """Takes a step after every `every` batches, with their mean gradient."""
    for number, (x, y) in enumerate(batches, 1):
        scaler.scale(mse(model(x), y) / every).backward()
        if number % every == 0:
            scaler.step(optimizer)
            optimizer.zero_grad()


def faulty_scheduled(model, batches, optimizer, scaler, scheduler):
    """Moves the learning-rate schedule by one for each step that was taken."""
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()


def faulty_static(model, batches, optimizer, half_gradients):
    """Scales by a constant. Gradients that pass back
    through `half_gradients` are rounded to fp16."""
    scale = 2.0**-10
    for x, y in batches:
        optimizer.zero_grad()
        (scale * mse(half_gradients(model(x)), y)).backward()
        for weight in model.parameters():
            weight.grad /= scale
        optimizer.step()


# %% [markdown]
# Write the five fixed loops, with the same arguments: copy each one and fix the one or two wrong lines. You may run the
# check after each of them. The check uses a small linear model whose weights are two tensors (`model.parameters()`
# gives both); some batches overflow, and their steps are skipped. In the last loop, gradients are about $10^{-8}$, and
# in some batches about $10^{-12}$.


# %% solve="bug_hunt"
def train_clipped(model, batches, optimizer, scaler, *, max_norm):
    """faulty_clipped, fixed."""
    ### BEGIN SOLUTION
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
    ### END SOLUTION


def train_logged(model, batches, optimizer, scaler):
    """faulty_logged, fixed."""
    ### BEGIN SOLUTION
    norms = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        scaler.unscale_(optimizer)
        gradients = [weight.grad for weight in model.parameters()]
        norms.append(float(torch.nn.utils.get_total_norm(gradients)))
        scaler.step(optimizer)
        scaler.update()
    return norms
    ### END SOLUTION


def train_accumulated(model, batches, optimizer, scaler, *, every):
    """faulty_accumulated, fixed."""
    ### BEGIN SOLUTION
    for number, (x, y) in enumerate(batches, 1):
        scaler.scale(mse(model(x), y) / every).backward()
        if number % every == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    ### END SOLUTION


def train_scheduled(model, batches, optimizer, scaler, scheduler):
    """faulty_scheduled, fixed."""
    ### BEGIN SOLUTION
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        scaler.step(optimizer)
        scale_before = scaler.get_scale()
        scaler.update()
        if scaler.get_scale() >= scale_before:
            scheduler.step()
    ### END SOLUTION


def train_static(model, batches, optimizer, half_gradients):
    """faulty_static, fixed."""
    ### BEGIN SOLUTION
    scale = 2.0**28
    for x, y in batches:
        optimizer.zero_grad()
        (scale * mse(half_gradients(model(x)), y)).backward()
        for weight in model.parameters():
            weight.grad /= scale
        optimizer.step()
    ### END SOLUTION


# %% check="bug_hunt"
check("bug_hunt")

# %%
with reveal_prediction("crashes") as truth:
    print("the others run, and learn too slowly, or not at all")
    truth(1)

# %% [markdown]
# A loop that crashes is the easiest to find. The first loop clips to `max_norm / scale`: the learning rate is
# effectively divided by 65536, and the loss looks *stable*. The fourth lets the learning rate fall fastest when
# training is least stable. In other people's code you will also find older interfaces: `torch.cuda.amp.autocast()`,
# `GradScaler()` from `torch.cuda.amp`, or apex's `amp.initialize(model, optimizer, opt_level="O1")` in deck [003]. All
# of them have been replaced by `torch.amp`.

# %% [markdown]
# ## 13. Practice: eight bits
#
# For the newest chips, deck [000] names E4M3 for weights and activations, E5M2 for gradients, and "extra tricks
# (per-tensor scaling)". e4m3fn spans 18 powers of two, and fp16 spans 40. One scale for a whole model no longer works,
# so each *tensor* has its own scale, which brings the tensor's largest value to about 448. That largest value is known
# only after the tensor is computed. *Delayed* scaling therefore uses the largest value of the previous steps.
# **Predict:** what happens to delayed scaling when a tensor suddenly becomes ten times as large?

# %%
predict("jump", "At the jump, its error is large for", unit="steps")


# %%
def fp8_error(tensor, scale):
    """The relative error of a tensor that is
    scaled, rounded to e4m3fn and scaled back."""
    back = E4M3FN.round((tensor * scale).clamp(-448, 448)) / scale
    return float((back - tensor).norm() / tensor.norm())


numbers = torch.Generator().manual_seed(0)
sizes = [1e-4 * (1 + 0.02 * i) * (10 if i >= 30 else 1) for i in range(60)]
tensors = [torch.randn(4096, generator=numbers) * size for size in sizes]
largest = [float(t.abs().max()) for t in tensors]
ways = {"no scaling": [1.0] * 60, "per tensor": [448 / top for top in largest]}
ways["delayed by 8 steps"] = [
    448 / max(largest[max(0, i - 8) : i] or [largest[0]]) for i in range(60)
]

# %%
with reveal_prediction("jump") as truth:
    figure, axes = style.subplots(figsize=(9, 3))
    for (name, chosen), line in zip(ways.items(), ("-", "--", ":"), strict=True):
        errors = [fp8_error(t, scale) for t, scale in zip(tensors, chosen, strict=True)]
        axes.plot(errors, line, label=name)
    title = "e4m3fn; the tensor grows tenfold at step 30"
    axes.set(xlabel="step", ylabel="relative error", title=title, ylim=(0, 1.05))
    legend = axes.legend(frameon=False)
    truth(sum(error > 0.1 for error in errors))

# %% [markdown]
# Without scaling, everything is lost before step 30: 1e-4 is far below e4m3fn's smallest number, 0.002. After the jump
# the values are near that number, and the larger ones survive with coarse rounding. With its own scale, a tensor keeps
# three bits of mantissa, which gives an error of about 3 %. Delayed scaling is just as good until the jump, where the
# old scale clips the large values. If you leave some headroom, as Transformer Engine and torchao do, the error at the
# jump shrinks. Try it.

# %% [markdown]
# ## Where you are

# %%
Progress("lab03_mixed_precision")
