# %% [markdown]
# # Before you spend
#
# A grant pays for GPUs by the hour. A training script works, but slowly, and the model is due on Friday. Before you
# rent the first hour, you need to answer four questions. What will it cost? Which batch size finishes first? What is
# worth fixing? And is the fixed script still the same training? Deck [001] asks: *how many resources*, and *how do I
# not run out of money in the process?* Each of your answers is a prediction; the judge runs the modelled training to
# test it.
#
# After this lab you can
#
# * say what a training run costs, and rent the GPUs that cost least;
# * choose the batch that finishes a training first, and see when more GPUs no longer help;
# * predict from a timeline what each fix gains, alone and after other fixes;
# * decide from the losses of several seeds whether a fix has changed the training;
# * apply all of this to a slow script on your own machine.
#
# **About 138 minutes (estimated)**.
#
# | exercise | `cost` | `time_to_quality` | `rank_gains` | `same_curve` |
# |---|---|---|---|---|
# | section | 1 | 2 | 3 | 4 |
# | minutes | 33 | 32 | 40 | 33 |
#
# The last two sections carry no points and take another 25 minutes. The budget itself is spent in the next lab,
# `lab10b`. You need no GPU: runs are modelled, and labelled as modelled. *Write your prediction down* before you run
# the next cell. Decks are quoted by number: [001] course introduction, [004] deep learning, hopefully faster.
#
# A failing check shows the first case that is wrong, and what your code returned. `case("cost")` returns the inputs of
# that case as Python values, and `hint("cost")` gives hints, one at a time.

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
epochs = 4
compare_s = 20.0

# %% given
import itertools
import zlib

import numpy as np
import torch

from edl_labs import compare
from edl_labs.plots import style, timeline_picture
from edl_labs.units import seconds
from edl_labs.virtual import VirtualMachine, operation_runs

# %%
Progress("lab10_capstone")

# %% [markdown]
# ## 1. What will it cost?
#
# A model of 1.2 billion parameters is to read 24 billion tokens. According to its datasheet, an H100 reaches 989
# TFLOP/s in bf16 (twice that for 2:4 sparse weights, which are not used here). This script reaches 40 % of it. An H100
# costs 3.50 per hour. Training does 6 FLOP for each parameter and token: 2 forward, 4 backward. Activations are
# recomputed, so the forward pass runs *once more*. **Predict:** how long does one node of 8 GPUs train? And if 12 GPUs
# train on two nodes, what percentage of the bill is for GPUs that are rented but never train?

# %%
predict("one_node", "On one node it trains for", unit="h")
predict("idle", "The idle GPUs' share of the bill is", unit="%")

# %% [markdown]
# Write three functions. A `run` has `parameters`, `tokens`, `batch`, `recompute` (True or False), `state_bytes` (bytes
# per parameter for weights, gradients and optimizer), `activation_bytes` (on *each* GPU) and `deadline_h`. A `chip` has
# `flop_per_s` (its peak), `achieved` (the share of the peak that the script reaches, counting recomputation),
# `memory_bytes`, `node_gpus`, `most_gpus`, `price_per_gpu_h` and `setup_h`.
#
# * `hours(run, chip, gpus)`: `setup_h`, during which no GPU trains, plus the hours of the training, which `gpus` GPUs
#   share equally.
# * `fits(run, chip, gpus)`: whether one GPU's share of the state (which is sharded over all GPUs) and its activations
#   fit into its memory.
# * `cheapest(run, chip)`: the number of GPUs that costs least, as `{"gpus": …, "rented": …, "hours": …, "money": …}`.
#   You rent whole nodes, and all their GPUs count: at most `most_gpus` may be rented. You pay for every rented GPU from
#   the first hour to the last, even if it is idle. `gpus` may be any number that divides the batch, fits, and finishes
#   within `deadline_h`. Return None if there is no such number. A share that fills the memory exactly fits. No two
#   numbers of GPUs cost the same here, since `setup_h` is above 0.


# %% solve="cost"
def hours(run, chip, gpus):
    """Hours from renting to the end."""
    ### BEGIN SOLUTION
    passes = 8 if run["recompute"] else 6
    flop = passes * run["parameters"] * run["tokens"]
    rate = gpus * chip["achieved"] * chip["flop_per_s"]
    return chip["setup_h"] + flop / rate / 3600
    ### END SOLUTION


def fits(run, chip, gpus):
    """Whether the run fits into the memory of each GPU."""
    ### BEGIN SOLUTION
    shard = run["parameters"] * run["state_bytes"] / gpus
    return shard + run["activation_bytes"] <= chip["memory_bytes"]
    ### END SOLUTION


def cheapest(run, chip):
    """GPUs, rented GPUs, hours and money of the cheapest way, or None."""
    ### BEGIN SOLUTION
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            ways.append(way)
    return min(ways, key=lambda way: way["money"], default=None)
    ### END SOLUTION


# %% check="cost"
check("cost")

# %% given
RUN = {"parameters": 1_200_000_000, "tokens": 24_000_000_000, "batch": 96}
RUN |= {"recompute": True, "state_bytes": 16, "activation_bytes": 30e9}
H100 = {"flop_per_s": 989e12, "achieved": 0.4, "memory_bytes": 80e9, "node_gpus": 8}
H100 |= {"most_gpus": 64, "price_per_gpu_h": 3.5, "setup_h": 1.0}

# %%
with requires_solution("cost"), reveal_prediction("one_node", "idle") as truth:
    rented = {8: 8, 12: 16, 16: 16, 24: 24, 48: 48}
    for gpus, paid in rented.items():
        lasts = hours(RUN, H100, gpus)
        print(f"modelled, {gpus} GPUs: {lasts:.1f} h, {paid * lasts * 3.5:.0f}")
    for deadline_h in (100, 10, 5):
        way = cheapest({**RUN, "deadline_h": deadline_h}, H100)
        print(f"modelled, by {deadline_h} h: {way['gpus']} GPUs, {way['money']:.0f}")
    trains_h = hours(RUN, H100, 8) - H100["setup_h"]
    truth(one_node=3600 * trains_h, idle=4 / 16)

# %% [markdown]
# An estimate based on the peak instead of the achieved rate, and without the second forward pass, would come to less
# than a third of the bill. A deadline costs money, too: more GPUs wait during the set-up, and a partly used node is
# paid in full.

# %% [markdown]
# ## 2. Which batch size finishes first?
#
# Deck [004]: *throughput is gameable*. A larger batch processes more samples per second, but each sample teaches
# less. One law fits many training runs: with a batch of B, a given quality (for example, a target loss) is reached
# after S (1 + B_c / B) steps, where B_c, the *critical batch*, is a property of the problem. Below B_c, twice the
# batch nearly halves the steps; above B_c, it hardly changes them.
#
# Take the slide's machine, 6 TFLOP/s and 300 GB/s, a layer of 1024 × 1024 in fp32, and B_c = 256. **Predict** the
# batch that finishes first. Then take the batch up to 512 with the most samples per second: how many times as long
# does it take as the one that finishes first?

# %%
predict("ends_first", "The batch that finishes first is", unit="samples")
predict("most_a_second", "With a batch of 512, the time is multiplied by", unit="times")

# %% [markdown]
# A `job` has `steps` (S), `critical_batch` (B_c), `sample_flop` and `sample_bytes` (computed and moved for each sample)
# and `weight_bytes` (moved once per step, on each GPU). A `machine` has `flop_per_s`, `memory_byte_per_s`, `overhead_s`
# (added to each step), `sync_s` (the wait for the sum over GPUs, once per step, *with two or more GPUs*: it begins when
# computing and moving have ended, and nothing overlaps it), `most_samples` (the most that fit on one GPU) and
# `most_gpus`. Write
#
# * `step_s(job, machine, batch, gpus)`: each GPU takes `batch / gpus` samples; the longer of computing and moving,
#   plus the overhead, plus the wait for the sum;
# * `quality_s(job, machine, batch, gpus)`: seconds until the quality is reached; steps are not rounded;
# * `best_batch(job, machine, gpus)`: the batch that finishes first, of those that `gpus` GPUs share equally and that
#   fit;
# * `fewest_gpus(job, machine, deadline_s)`: the smallest number of GPUs that finishes by the deadline, each number with
#   its best batch; None if no number up to `most_gpus` does.


# %% solve="time_to_quality"
def step_s(job, machine, batch, gpus):
    """Seconds of a step."""
    ### BEGIN SOLUTION
    samples = batch / gpus
    computes_s = samples * job["sample_flop"] / machine["flop_per_s"]
    moved = job["weight_bytes"] + samples * job["sample_bytes"]
    sums_s = machine["sync_s"] if gpus > 1 else 0.0
    longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
    return longer_s + machine["overhead_s"] + sums_s
    ### END SOLUTION


def quality_s(job, machine, batch, gpus):
    """Seconds of the training."""
    ### BEGIN SOLUTION
    steps = job["steps"] * (1 + job["critical_batch"] / batch)
    return steps * step_s(job, machine, batch, gpus)
    ### END SOLUTION


def best_batch(job, machine, gpus):
    """The batch that finishes first."""
    ### BEGIN SOLUTION
    batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
    return min(batches, key=lambda batch: quality_s(job, machine, batch, gpus))
    ### END SOLUTION


def fewest_gpus(job, machine, deadline_s):
    """The fewest GPUs that finish by the deadline, or None."""
    ### BEGIN SOLUTION
    for gpus in range(1, machine["most_gpus"] + 1):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None
    ### END SOLUTION


# %% check="time_to_quality"
check("time_to_quality")

# %% given
LAYER = {"steps": 10_000, "critical_batch": 256, "sample_flop": 2 * 1024**2}
LAYER |= {"weight_bytes": 4 * 1024**2, "sample_bytes": 2 * 4 * 1024}
SLIDE = {"flop_per_s": 6e12, "memory_byte_per_s": 300e9, "overhead_s": 0.0}
SLIDE |= {"sync_s": 1e-6, "most_samples": 512, "most_gpus": 64}

# %%
with (
    requires_solution("time_to_quality"),
    reveal_prediction("ends_first", "most_a_second") as truth,
):
    best = best_batch(LAYER, SLIDE, 1)
    least_s = quality_s(LAYER, SLIDE, best, 1)
    for batch in (8, 20, best, 64, 128, 512):
        a_second = batch / step_s(LAYER, SLIDE, batch, 1)
        takes = quality_s(LAYER, SLIDE, batch, 1) / least_s
        print(f"B = {batch:3}: {a_second:.3g} samples/s, {takes:.2f} × the time")
    truth(ends_first=best, most_a_second=takes)

# %%
with requires_solution("time_to_quality"):
    _, axes = style.subplots(figsize=(8, 3.6))
    batches = range(4, 513)
    ends = [quality_s(LAYER, SLIDE, batch, 1) for batch in batches]
    rate = [batch / step_s(LAYER, SLIDE, batch, 1) for batch in batches]
    axes.loglog(batches, [one / min(ends) for one in ends], label="time to quality")
    axes.loglog(batches, [one / max(rate) for one in rate], "--", label="samples/s")
    ridge = 4 * 1024**2 / 300e9 / (2 * 1024**2 / 6e12 - 8 * 1024 / 300e9)
    axes.axvline(ridge, color=style.GREY, linestyle="-.", label=f"ridge, {ridge:.1f}")
    axes.set(xlabel="batch", ylabel="times the best", title="One layer (modelled)")
    axes.set_yticks(
        [0.1, 0.2, 0.5, 1, 2, 5], labels=["0.1", "0.2", "0.5", "1", "2", "5"]
    )
    axes.legend(frameon=False)

# %%
from edl_labs.bench import measured_here

# A layer on a GPU of yours: run `edl-labs record --mine` there,
# then put its folder next to this notebook.
print(measured_here("layer_by_batch"))

# %% [markdown]
# The best batch is the first whole number above the ridge of 43.4. Below the ridge, more samples cost no time; above
# it, each sample costs its full time and teaches less. Throughput is flat from there on, while the time rises. That
# holds for this machine. Where a step has an overhead, a larger batch spreads it over more samples. Where each sample
# moves many bytes, no batch reaches the ridge. **Predict:** take the same layer with an overhead of 20 µs per step,
# and 30 µs for the sum if several GPUs share a step. How many times as fast are 16 GPUs as one?

# %%
predict("sixteen", "16 GPUs are faster by", unit="times")

# %%
with requires_solution("time_to_quality"), reveal_prediction("sixteen") as truth:
    real = {**SLIDE, "overhead_s": 20e-6, "sync_s": 30e-6}
    for gpus in (1, 2, 4, 8, 16):
        batch = best_batch(LAYER, real, gpus)
        ends_s = quality_s(LAYER, real, batch, gpus)
        alone_s = ends_s if gpus == 1 else alone_s
        print(f"{gpus:2} GPUs: batch {batch}, {alone_s / ends_s:.2f} × as fast")
    truth(alone_s / ends_s)

# %% [markdown]
# No slow link and no idle rank limits this speed-up. A training run needs a minimum number of steps, and a step needs
# a minimum time; more GPUs reduce neither.

# %% [markdown]
# ## 3. What is worth fixing?
#
# Deck [004]: *go for biggest, cheapest gains*. Below are four steps of a script on a modelled GPU: it decodes on the
# host, copies, computes, sums gradients over the network, and logs. The copy is from pageable memory, so it runs on the
# kernels' stream; a copy from pinned memory would appear in the row "copies". **Predict** from the picture: how much
# time would you gain if decoding took a tenth of its time, and which of the fixes in `MENDS` gains most?

# %% given
EXAMPLE = [
    {"op": "host", "name": "decode", "duration_s": 6e-3},
    {"op": "copy", "name": "to device", "nbytes": 64 << 20, "pinned": False},
    {"op": "kernel", "name": "forward", "duration_s": 7e-3, "after": "to device"},
    {"op": "kernel", "name": "backward", "duration_s": 6e-3},
    {"op": "kernel", "name": "all-reduce", "duration_s": 5e-3, "row": "network"},
    {"op": "kernel", "name": "update", "duration_s": 3e-3, "after": "all-reduce"},
    {"op": "host", "name": "log", "duration_s": 4e-3},
]
EXAMPLE[4]["after"] = "backward"
MENDS = {
    "decode once": {"names": ["decode"], "times": 0.1},
    "bytes, not floats": {"names": ["to device"], "times": 0.25},
    "half precision": {"names": ["forward", "backward"], "times": 0.5},
    "half gradients": {"names": ["all-reduce"], "times": 0.5},
    "log less": {"names": ["log"], "times": 0.0},
}
MACHINE = VirtualMachine(
    launch_overhead_s=2e-4, copy_overhead_s=1e-4, link_byte_per_s=12e9, sm_count=108
)
spans = operation_runs.run_spans(EXAMPLE, MACHINE, count=4)

# %%
_, axes = style.subplots(figsize=(9, 3))
picture = operation_runs.as_picture(spans)
_ = timeline_picture.draw_timeline(axes, picture, title="Four steps (modelled)")

# %%
for span in spans[:10]:
    began, ended = seconds(span["start_s"]), seconds(span["end_s"])
    told = f"{span['row']:<8}{span['kind']:<7}{span['name']:<11}{began} to {ended}"
    print(f"{told:<52} after {span['after']}")

# %%
predict("decode_gain", "Decoding ten times as fast gains", unit="ms")
predict(
    "first_mend",
    "The fix that gains most is",
    choices=tuple(MENDS),
)

# %% [markdown]
# A timeline is a list of spans in the order of issue. `row` is "host", "gpu", "copies" or "network": the spans of a row
# run one after another. `after` lists the indices, in this list, of spans in other rows that had to end first. `kind`
# is "work" or "call" (a launch) or "wait" on the host, "kernel" or "copy" elsewhere. A fix (an entry of `mends`) has
# the `names` of the operations that it changes, and `times`, the factor by which it multiplies the seconds of their
# work, kernels and copies. The host needs as long to launch a short kernel as a long one. If `times` is 0, the
# operation is not issued: it has no call and no wait. The factors of two fixes of one operation multiply: 0.5 and 0.5
# leave a quarter.
#
# * `replayed_s(spans, mends)`: the seconds of the run with a list of fixes applied. Each span starts when the one
#   before it in its row, and all of its `after`, are over. A *wait* has no length of its own: it ends when the spans
#   that it comes after have ended. (For the spans after it, an operation that is not issued counts as a kernel of
#   length 0. Like any other span, this kernel starts when the one before it in its row, and all of its `after`, are
#   over.)
# * `rank(spans, mends)`: `mends` is a dict by name. Return three pairs `(name, gain)`: first the best fix; then the
#   best of the others *with the first one done*, and its additional gain; then a third in the same way. There are no
#   ties.
#
# The judge runs the script again with your fixes. A gain may be off by a tenth of itself or by a hundredth of the run,
# whichever is larger.


# %% solve="rank_gains"
def replayed_s(spans, mends):
    """Seconds of the run with these fixes applied."""
    ### BEGIN SOLUTION
    left, ends, rows = {}, [], {}
    for mend in mends:
        for name in mend["names"]:
            left[name] = left.get(name, 1.0) * mend["times"]
    for span in spans:
        times = left.get(span["name"], 1.0)
        lasts_s, after = span["end_s"] - span["start_s"], span["after"]
        if span["kind"] == "wait":
            lasts_s, after = 0.0, after if times else []
        elif span["kind"] == "call":
            lasts_s = lasts_s if times else 0.0
        else:
            lasts_s *= times
        row_s = rows.get(span["row"], 0.0)
        rows[span["row"]] = max([row_s, *(ends[at] for at in after)]) + lasts_s
        ends.append(rows[span["row"]])
    return max(ends)
    ### END SOLUTION


def rank(spans, mends):
    """The three fixes to apply first, each with its gain in seconds."""
    ### BEGIN SOLUTION
    picked, done, now_s = [], [], replayed_s(spans, [])
    for _ in range(3):
        others = {name: mend for name, mend in mends.items() if mend not in done}
        after_s = {name: replayed_s(spans, [*done, others[name]]) for name in others}
        best = min(after_s, key=after_s.get)
        picked.append((best, now_s - after_s[best]))
        done, now_s = [*done, mends[best]], after_s[best]
    return picked
    ### END SOLUTION


# %% check="rank_gains"
check("rank_gains")

# %%
with (
    requires_solution("rank_gains"),
    reveal_prediction("decode_gain", "first_mend") as truth,
):
    now_s, ranked = replayed_s(spans, []), rank(spans, MENDS)
    print("modelled: time of the spans, gain as predicted, gain when run again")
    for name, mend in MENDS.items():
        own = [one for one in spans if one["name"] in mend["names"]]
        took_s = sum(one["end_s"] - one["start_s"] for one in own)
        after_s = operation_runs.run_s(EXAMPLE, MACHINE, count=4, mends=[mend])
        row_s = took_s, now_s - replayed_s(spans, [mend]), now_s - after_s
        print(name.ljust(18), *map(seconds, row_s), sep="\t")
    print("in order:", "; ".join(f"{one} {seconds(gain_s)}" for one, gain_s in ranked))
    decoded_s = replayed_s(spans, [MENDS["decode once"]])
    truth(decode_gain=now_s - decoded_s, first_mend=ranked[0][0])

# %% [markdown]
# An operation's share of the timeline is not what you gain by fixing it. An operation that overlaps a longer one
# already costs no time, and after each fix another operation is the limit. Gains do not add up, and their order
# changes. So fix one thing, profile again, and stop when the next gain costs more of your time than it saves.

# %% [markdown]
# ## 4. Is it still the same training?
#
# A fixed script should train as before. But a different order of additions changes the last digits of the losses.
# Different random numbers, for example from a different worker or dropout kernel, change the first digits.
# **Predict:** train the network below with ten seeds and one script. For each pair of seeds, by how many percent does
# the larger final loss exceed the smaller one? Give the median over all pairs. And by how much do the final losses of
# one seed differ between fp32 and fp64?


# %% given
def curve(seed, *, dtype=np.float64, rate=0.5, warm=0.0, jitter=0.0):
    """Sixteen losses of a small network, each a mean over ten steps."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(256, 12)).astype(dtype)
    y = np.sin(x @ rng.normal(size=(12, 1))).astype(dtype)
    a, b = ((rng.normal(size=s) / 3).astype(dtype) for s in ((12, 24), (24, 1)))
    losses = []
    noise = np.random.default_rng((seed, int(1e6 * jitter)))
    for step in range(160):
        rows = rng.integers(256, size=32)
        hidden = np.tanh(x[rows] @ a)
        wrong = hidden @ b - y[rows] + jitter * noise.normal(size=(32, 1))
        now = dtype(rate * (warm + (1 - warm) * min(1.0, step / 80)) / 32)
        back = (wrong @ b.T) * (1 - hidden**2)
        b, a = b - now * (hidden.T @ wrong), a - now * (x[rows].T @ back)
        losses.append(float((wrong**2).mean()))
    return np.reshape(losses, (16, 10)).mean(axis=1)


def curves(**changed):
    """The curves of ten seeds, as an array [seeds, points]."""
    return np.stack([curve(seed, **changed) for seed in range(10)])


# %%
predict("two_seeds", "The final losses of two seeds differ by", unit="%")
predict(
    "two_types",
    "In fp32 and fp64, the final losses of one seed differ by about",
    choices=("1e-7", "1e-4", "1e-2"),
)

# %%
with reveal_prediction("two_seeds", "two_types") as truth:
    single, double = curves(dtype=np.float32), curves()
    last = itertools.combinations(double[:, -1], 2)
    apart = np.median([max(pair) / min(pair) - 1 for pair in last])
    rounding = np.abs(single / double - 1)[:, -1].max()
    print(f"two seeds, median: {apart:.0%}; fp32 and fp64: {rounding:.1e}")
    truth(two_seeds=apart, two_types=f"1e{round(np.log10(rounding))}")

# %%
_, (left, right) = style.subplots(1, 2, figsize=(10, 3.2))
before, after = curves(jitter=0.01), curves(jitter=0.02, rate=0.52)
for a, b in zip(before[:, 3:], after[:, 3:], strict=True):
    left.plot(a, color=style.BLUE, linewidth=1)
    left.plot(b, color=style.ORANGE, linewidth=1, linestyle="--")
    right.plot(b - a, color=style.GREEN, linewidth=1)
left.set(title="ten seeds, before (solid), after (dashed)", ylabel="loss")
right.axhline(0, color=style.GREY, linewidth=1)
right.set(title="differences, seed by seed", ylabel="loss after - loss before")
for axes in (left, right):
    axes.set_xlabel("point, from the fourth of 16")

# %% [markdown]
# On the left, the curves of different seeds are so far apart that you cannot tell whether the fix changed anything.
# On the right, each seed is compared with itself. If a fix changes nothing, the sign of a seed's difference is a coin
# toss: all 2^n patterns of signs are equally likely.
#
# * `sign_flip_p(differences)`: `differences` has one number for each of n seeds (at most ten). Multiply them by each of
#   the 2^n patterns of signs. Return the share of patterns whose sum is at least as far from zero as the sum of
#   `differences`.
# * `same(curves_a, curves_b)`: arrays [seeds, points], row i of both from seed i. `"equal"`: within `ROUNDING` of each
#   other at all points, relative to either loss. `"noise"`: another run of the same training. `"changed"`: a
#   different training.
#
# The check calls your `same` for 58 pairs of curves with ten seeds and 16 points: 6 are equal; 28 are noise, of which
# at most 2 may be called changed; 24 are changed, of which at most 2 may be missed. A change lasts for four points or
# more: over the whole curve, at the beginning, at the end, or alternately up and down. It may lower the loss. Most
# noise is between 0.05 % and 2 % of the loss, some of it just above `ROUNDING`; a change is smaller than the distance
# between seeds.

# %% given
ROUNDING = 1e-6
ALPHA = 0.02  # how often a pair of noise may be called changed
TINY = 1e-12  # how far equal sums may be apart through rounding


# %% solve="same_curve"
def sign_flip_p(differences):
    """The share of sign patterns whose sum is at least as far from zero."""
    ### BEGIN SOLUTION
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = np.abs(patterns @ np.asarray(differences))
    return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
    ### END SOLUTION


def same(curves_a, curves_b):
    """ "equal", "noise" or "changed"."""
    ### BEGIN SOLUTION
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if len(parts) * p <= ALPHA else "noise"
    ### END SOLUTION


# %% check="same_curve"
check("same_curve")

# %%
with requires_solution("same_curve"):
    plain = curves(jitter=0.01)
    others = {
        "fp32": (double, curves(dtype=np.float32)),
        "other noise": (plain, curves(jitter=0.010001)),
        "a shorter warm-up": (plain, curves(jitter=0.010002, warm=0.1)),
        "a rate 2 % higher": (plain, curves(jitter=0.010003, rate=0.51)),
    }
    for name, (a, b) in others.items():
        print(f"{name:<18} {same(a, b)}")

# %% [markdown]
# "noise" does not prove that nothing changed: ten seeds cannot show a very small change. Report how many seeds you ran,
# and how large a change they would have shown. One seed shows nothing at all.

# %% [markdown]
# ## 5. Your machine, your script
#
# This section carries no points and models nothing: its script trains a small network on your processor, slowly. It
# decodes in the loop, computes in fp64 and reads a loss at each step. It has a Python loop where one operation would be
# enough, a layout that makes its products slow, and a list that keeps more than it needs. **Predict:** how many times
# as fast can it become, with the same losses?


# %% given
def packed_images(count=256, side=24):
    """Images as they are stored on a disk: compressed bytes."""
    rng = np.random.default_rng(4)
    smooth = rng.integers(0, 8, size=(count, side, side)).cumsum(axis=1) % 256
    return [zlib.compress(image.astype(np.uint8).tobytes()) for image in smooth]


def network(seed, dtype):
    """Two layers for images of 24 × 24."""
    torch.manual_seed(seed)
    layers = (torch.nn.Linear(576, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    return torch.nn.Sequential(*layers).to(dtype)


def train_slowly(packed, seed=0):
    """Sixteen losses."""
    model, kept, losses = network(seed, torch.float64), [], []
    for step in range(16 * epochs):
        rows = [(step * 32 + at) % len(packed) for at in range(32)]
        images = [np.frombuffer(zlib.decompress(packed[at]), np.uint8) for at in rows]
        columns = torch.tensor(np.stack(images, axis=1), dtype=torch.float64)
        batch = columns.t()
        for row in range(batch.shape[0]):
            batch[row] = (batch[row] - batch[row].mean()) / (batch[row].std() + 1e-5)
        labels = torch.tensor([at % 10 for at in rows])
        loss = torch.nn.functional.cross_entropy(model(batch), labels)
        model.zero_grad()
        loss.backward()
        kept.append([p.grad.clone() for p in model.parameters()])
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
        losses.append(loss.item())
    return np.reshape(losses, (16, epochs)).mean(axis=1)


packed = packed_images()

# %%
predict("own_speedup", "My script becomes faster by", unit="times")

# %% [markdown]
# Fix it in the next cell, one thing at a time, and run the cells below after each fix. Profile first if you like
# (`python -m cProfile`, or `edl_labs.trace`): which of the six is the largest?


# %%
def train_mine(packed, seed=0):
    """Your version: fix this one."""
    return train_slowly(packed, seed)


# %%
verdict = compare(
    {"slow": lambda: train_slowly(packed), "mine": lambda: train_mine(packed)},
    budget_s=compare_s,
    equal=False,  # the losses are compared below
)
verdict

# %%
with requires_solution("same_curve"):
    before_it = np.stack([train_slowly(packed, seed) for seed in range(10)])
    mine = np.stack([train_mine(packed, seed) for seed in range(10)])
    print(f"losses of ten seeds: {same(before_it, mine)}")

# %%
mended = verdict.verdict == "faster"  # the prediction is revealed only then
if mended:
    with reveal_prediction("own_speedup") as truth:
        print(f"measured: {1 / verdict.ratio:.2f} times as fast")
        truth(1 / verdict.ratio)

# %% [markdown]
# *Inconclusive* means that the measurement could not decide within its time limit. Use a larger `compare_s`, or stop
# other programs. A faster script whose losses are "changed" is a different training.

# %% [markdown]
# ## 6. Which GPU would you rent?
#
# One question is left before you spend: how long is a step of *your* model on a card that you do not have?
# `edl_labs.predict` traces the model's operations without computing them, and estimates their time. What follows is
# **modelled**. Its intervals are meant to contain the true time of a step in four cases out of five. Prices are
# examples. **Predict:** an H100 has 3.2 times the peak of an A100 in bf16. How many times as fast is a step?

# %%
predict("h100", "A step on an H100 is faster by", unit="times")

# %%
from edl_labs.predict import predict_step

block = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
model = torch.nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
tokens = torch.empty(16, 512, 1024, device="meta")
first = predict_step(model, tokens, "A100-80GB", dtype="amp_bf16", optimizer="adamw")

# %%
with reveal_prediction("h100") as truth:
    steps = {}
    for card, price in (("A100-80GB", 2.0), ("H100", 3.5)):
        step = first if card == first.machine else first.what_if(machine=card)
        told = f"{seconds(step.low_s)} to {seconds(step.high_s)}"
        low, middle, high = (
            1e6 * one * price / 3600 for one in (step.low_s, step.step_s, step.high_s)
        )
        print(f"modelled, {card}: {seconds(step.step_s)} ({told})")
        print(f"   a million steps cost {middle:.2f} ({low:.2f} to {high:.2f})")
        steps[card] = step.step_s
    truth(steps["A100-80GB"] / steps["H100"])

# %% [markdown]
# A faster card is the cheaper one only if its price rises by less than its speed. Which card is cheaper here, and do
# the intervals leave that open? Ask again for the batch and the dtype that you would really run.
#
# You now have a cost, a batch, a list of fixes, and a test that the training is still the same. The budget is spent in
# the next lab.

# %%
Progress("lab10_capstone")
