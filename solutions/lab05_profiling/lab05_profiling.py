# %% [markdown]
# # Profiling: where the time goes
#
# A benchmark says *how long* a step takes. A profile says *where* the time goes, and it is easily misread: most
# profiles count some time twice, use the wrong clock, or look at the wrong moment. In this lab you use profiles to find
# what a training step waits for, which line causes it, how much a fix would gain, and what to fix first.
#
# After this lab you can
#
# * record a trace, turn its nested rows into self times, and tell on which device an operator really ran;
# * name the pattern that bounds a step, give the share of each pattern, and name the line that causes it;
# * say what fixing a cause gains at most, and fix it without changing a result;
# * decide what to fix first in a loop of your own, and justify the decision.
#
# **About 211 minutes (estimated)**, in two sittings: the first ends with section 2. The practice sections carry no
# points; they take another 180 minutes (estimated) and can be done in any order.
#
# | exercise | section | minutes |
# |---|---|---|
# | `self_times` | 1 | 39 |
# | `name_the_pattern` | 2 | 55 |
# | `blame` | 3 | 20 |
# | `planted` | 5 | 31 |
# | `own_traces` | 6 | 21 |
# | `own_loop` | 6 | 25 |
# | `schedule_states` | 7 | 20 |
#
# | practice | section | minutes |
# |---|---|---|
# | `read_a_sampler` | 8 | 41 |
# | `layer_profiler` | 9 | 37 |
# | `utilisation_lies` | 10 | 20 |
# | `most_to_gain` | 11 | 40 |
# | `read_the_monitors` | 12 | 42 |
#
# No GPU is needed: timelines come from a modelled device, and the measuring cells profile this machine, with or
# without a GPU. *Write your prediction down* before you run the next cell. If there is a box, enter a number, with or
# without its unit, and press Enter. Only then does the result appear next to it. Lecture slides are quoted by deck:
# [000] optimizing training pipelines, [002] software perspective, [003] performance and profiling, [004] deep
# learning, hopefully faster. `hint("name")` gives the hints of an exercise, one at a time.
#
# A check that fails shows the first wrong case and what your code returned; `case("self_times")` gives that case's
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
batch_size = 8
train_steps = 30
sample_seconds = 2.0
compare_profilers = True

# %% given
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from edl_labs import units
from edl_labs.clock import clock_for
from edl_labs.device import best_device, describe, torch_threads
from edl_labs.plots import style
from edl_labs.plots.timeline_picture import draw_timeline
from edl_labs.plots.trace_pictures import draw_nested
from edl_labs.trace import TorchLoop, attach, diagnose, side_by_side
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.loop import as_timeline, step_s, step_spans
from edl_labs.virtual.training import JobPlan, SmallTraining


def small_net(width=96):
    """Three blocks of two layers each, and a head."""

    def block():
        return torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width),
            torch.nn.GELU(),
            torch.nn.Linear(4 * width, width),
        )

    return torch.nn.Sequential(block(), block(), block(), torch.nn.Linear(width, 10))


# %%
Progress("lab05_profiling")

# %% [markdown]
# ## 1. One convolution, counted four times
#
# Deck [003] profiles a DenseNet with `torch.autograd.profiler.profile(use_cuda=True)`. The first rows of its table:
#
# | name | CPU time | CUDA time |
# |---|---|---|
# | conv2d | 9976.544 µs | 9972.736 µs |
# | convolution | 9958.778 µs | 9958.400 µs |
# | _convolution | 9946.712 µs | 9947.136 µs |
# | contiguous | 6.692 µs | 6.976 µs |
# | empty | 11.927 µs | 12.032 µs |
# | mkldnn_convolution | 9880.452 µs | 9889.792 µs |
#
# **Predict:** how long did these six rows take together? And how much of that time was on the GPU?

# %%
predict("six_rows", "The six rows took together", unit="ms")
predict("one_counted", "The sum of the rows is larger by a factor of", unit="times")

# %%
deck = {"conv2d": 9976.544, "convolution": 9958.778, "_convolution": 9946.712}
deck |= {"contiguous": 6.692, "empty": 11.927, "mkldnn_convolution": 9880.452}
with reveal_prediction("six_rows", "one_counted") as truth:
    added_us, whole_us = sum(deck.values()), deck["conv2d"]
    print(f"the six rows add up to {added_us:,.1f} µs")
    print(
        f"conv2d alone took {whole_us:,.1f} µs: counted {added_us / whole_us:.2f} times"
    )
    innermost_us = deck["mkldnn_convolution"]
    rate = units.flop_rate(3.776e9 / (innermost_us * 1e-6))
    print(f"3.776 GFLOP in {innermost_us / 1e3:.3f} ms: {rate}")
    truth(six_rows=whole_us * 1e-6, one_counted=added_us / whole_us)

# %% [markdown]
# The rows are *nested*: `conv2d` calls `convolution`, which calls `_convolution`, which calls the last three. Each
# row's time is its **total** time, including its callees. Only **self** times can be added up: a row's own time,
# without the rows *directly* inside it. The self times are 17.8 µs for conv2d, 12.1 µs for convolution and 47.6 µs for
# _convolution. All the rest is the time of the last three rows. (The row that matters is further down in the table:
# `max_pool2d_with_indices` takes 28 837.682 µs and does almost no arithmetic. That is 1.8 times as long as the table's
# two convolutions together.)
#
# And the GPU? Neither the model nor its input was ever moved to it. The CUDA column was measured with events around
# each operator. The device had no work, so these events were just a second clock for the same wall time. Two signs give
# this away. The kernel comes from MKL-DNN, Intel's CPU library. And 382 GFLOP/s is a good rate for a CPU, but
# ridiculously low for a GPU.
#
# Write two functions:
#
# * `self_times(rows)` → `{name: self seconds}`. A row is a dict with `name`, `thread`, `start_s`, `end_s`. Rows come in
#   **any order**, and those of one thread are nested. A row may begin exactly when another ends, an operator may call
#   another one with the same name, and no two rows have both the same start and the same end. Rows of different threads
#   are independent, even when they overlap. Add up the self times of all rows with the same name.
# * `ran_on(entry, cpu_flop_per_s=...)` → `"cpu"` or `"gpu"`. An entry has `flop` (0.0 if unknown), `cpu_s` and `cuda_s`
#   (above 0 in every entry). Apply two tests, in this order. Do `flop` operations within `cuda_s` need **more than the
#   CPU's peak**? Then the CPU cannot have done the work: `"gpu"`. Otherwise compare the two times. If they differ by at
#   most 5 % of `cpu_s`, up or down, they are two readings of one wall clock: `"cpu"`. If they differ by more, one is
#   the time of a launch on the host and the other the time of a kernel on the device: `"gpu"`.


# %% solve="self_times"
def self_times(rows):
    """Self seconds by name: without the time of the rows directly inside."""
    ### BEGIN SOLUTION
    times, around = {}, {}
    for row in sorted(rows, key=lambda row: (row["start_s"], -row["end_s"])):
        stack = around.setdefault(row["thread"], [])
        while stack and stack[-1]["end_s"] <= row["start_s"]:
            stack.pop()
        spent_s = row["end_s"] - row["start_s"]
        times[row["name"]] = times.get(row["name"], 0.0) + spent_s
        if stack:
            times[stack[-1]["name"]] -= spent_s
        stack.append(row)
    return times
    ### END SOLUTION


def ran_on(entry, *, cpu_flop_per_s):
    """Where the operator of a profiler's row did its work: cpu or gpu."""
    ### BEGIN SOLUTION
    if entry["flop"] > cpu_flop_per_s * entry["cuda_s"]:
        return "gpu"
    return (
        "cpu"
        if abs(entry["cuda_s"] - entry["cpu_s"]) <= 0.05 * entry["cpu_s"]
        else "gpu"
    )
    ### END SOLUTION


# %% check="self_times"
check("self_times")

# %% [markdown]
# Now try this on a real profile: a small network, forward and backward, on this machine's CPU. **Predict:** which
# operator has the largest *total* time, and which the largest *self* time?


# %%
predict("largest_total", "The operator with the largest total time is")
predict("largest_self", "The operator with the largest self time is")


# %%
def profiled_rows(batch):
    """Rows of torch.profiler for one forward and
    backward pass, after a few passes of warm-up."""
    from torch.nn import Conv2d, Flatten, Linear, ReLU

    layers = Conv2d(3, 32, 3), ReLU(), Flatten(), Linear(28800, 10)
    net, x = torch.nn.Sequential(*layers), torch.randn(batch, 3, 32, 32)
    recorded = TorchLoop(lambda: net(x).sum().backward()).record(1).events("operator")
    return [
        {"name": e.name, "thread": e.row, "start_s": e.start_s, "end_s": e.end_s}
        for e in recorded
    ]


# %%
def total_times(rows):
    """Seconds by name from the beginning to the end of its rows, with their callees."""
    total = dict.fromkeys((row["name"] for row in rows), 0.0)
    for row in rows:
        total[row["name"]] += row["end_s"] - row["start_s"]
    return total


# %%
with (
    requires_solution("self_times"),
    reveal_prediction("largest_total", "largest_self") as truth,
):
    rows = profiled_rows(batch_size)
    own, total = self_times(rows), total_times(rows)
    times = sum(total.values()) / sum(own.values())
    print(f"{len(rows)} rows; totals add up to {times:.1f} times the time that passed")
    for name in sorted(own, key=own.get, reverse=True)[:6]:
        print(
            f"{name:<46} self {units.seconds(own[name]):>8} "
            f"  total {units.seconds(total[name]):>8}"
        )
    most = [max(times, key=times.get) for times in (total, own)]
    truth(largest_total=most[0], largest_self=most[1])

# %% [markdown]
# An operator with a large total may only call others; an operator with a large self time does the work. *Sort by self
# time first*, then go up to the callers to see which code needs that work.
#
# To record a program of your own, put `with torch.profiler.profile() as prof:` around a few steps, not the first ones.
# `prof.key_averages().table(sort_by="self_cpu_time_total")` prints such a table, and
# `prof.export_chrome_trace("steps.json")` writes a trace, which contains every row with its times; open it at
# ui.perfetto.dev.

# %% [markdown]
# ## 2. What does a step wait for?
#
# Deck [000] names three typical patterns: steps bound by computation on the GPU, by the CPU's CUDA calls, and by
# synchronisation. The deck's pictures of them have been lost. The next cells draw these three, and two more that this
# lab adds (data and copies), for a modelled machine. The first cell defines the five steps as lists of operations;
# the second cell draws them.

# %% given
MACHINE = VirtualMachine.of("A100", queue_depth=None).warm()


def work(op, spent_us, line):
    """An operation of the host (or a kernel, for
    "launch") that takes `spent_us` microseconds."""
    return {
        "op": op,
        "name": "kernel",
        "duration_s": spent_us * 1e-6,
        "line": f"train.py:{line}",
    }


def copy_of(mebibytes, line, *, pinned=True):
    """A copy of a batch to the device."""
    return {
        "op": "copy",
        "nbytes": mebibytes << 20,
        "pinned": pinned,
        "line": f"train.py:{line}",
    }


ITEM = {"op": "item", "line": "train.py:16"}
EXAMPLES = {
    "gpu": [work("load", 20, 11), copy_of(1, 12), *[work("launch", 90, 13)] * 4, ITEM],
    "launch": [
        work("load", 4, 11),
        *[work("python", 6, 14), work("launch", 2, 14)] * 14,
    ],
    "synchronisation": [*[work("launch", 20, 15), ITEM, work("python", 45, 17)] * 3],
    "data": [work("load", 300, 11), copy_of(1, 12), *[work("launch", 25, 13)] * 3],
    "copy": [work("load", 5, 11), copy_of(6, 12), *[work("launch", 25, 13)] * 3, ITEM],
}

# %%
figure, rows = style.subplots(5, 1, figsize=(9, 11))
for axes, (pattern, step) in zip(rows, EXAMPLES.items(), strict=True):
    spans = step_spans(step, MACHINE)
    axes = draw_timeline(
        axes,
        as_timeline(spans),
        title=f"{pattern} (modelled A100): "
        f"{units.seconds(step_s(step, MACHINE))} per step",
    )
    axes.get_legend().remove()

# %% [markdown]
# What the host does *while the device is idle* shows what a step waits for:
#
# | pattern | why the device is idle |
# |---|---|
# | `"gpu"` | it is not idle: kernels run nearly all the time. This is the best case: now improve the kernels |
# | `"launch"` | kernels end before the host has launched the next one |
# | `"synchronisation"` | the host waits for the device before the next launch: `.item()`, `.cpu()`, `synchronize()` |
# | `"data"` | the next batch is not ready yet |
# | `"copy"` | the data are still being copied to the device |
#
# In the host's row, plain orange is a call, hatched green is Python, cross-hatched red is loading and grey is waiting.
# In the device's rows, blue is a kernel and dotted purple is a copy. For each empty stretch in the device's rows, look
# at what the host does above it.
#
# Here is one gap worked out by hand: the first one in the third picture. The device finishes a kernel at 21.5 µs, and
# its next kernel begins at 71.5 µs; meanwhile the host runs 45 µs of Python (line 17) and 5 µs of a call (line 15). Is
# Python too slow? No: a wait, `.item()` in line 16, also ended at 21.5 µs. It had kept the host waiting until the queue
# was empty, so the device was idle in any case. All 50 µs are charged to that wait: `synchronisation`, line 16. In the
# second picture, no wait ends at the moment at which a gap begins. There, the host itself is late: the pattern is
# `launch`, and each line is charged for its own part.
#
# The window begins with the first kernel or copy and ends where the last span ends. It is divided **exclusively**: no
# moment belongs to two patterns. The rules are:
#
# 1. While a kernel runs, the moment belongs to `gpu`. A wait for a busy device is not charged to `synchronisation`.
#    Kernels of two streams may overlap: the moment then belongs to the kernel that began first. (No two begin together,
#    and copies never overlap each other.)
# 2. While a copy runs and no kernel does, it belongs to `copy`.
# 3. The rest are **gaps**: stretches without a kernel or copy. What the host does in them is charged piece by piece.
#    `load` spans are always charged to `data`. For `call` and `python`, it depends on how the gap began. If a `wait` of
#    the host ended at the moment at which the gap began (times agree to a nanosecond), that wait emptied the queue, and
#    it is charged: to `copy` if the wait's name is "copy" (a copy that blocked the host), and to `synchronisation`
#    otherwise. If no wait ended then, the host was simply late: `launch`.
#
# Each charge also goes to a **line**: kernels, copies, loads, calls and Python are charged to the line that they come
# from. The charges of a wait go to the wait's line.
#
# Write `charges(spans)` → `{(pattern, line): seconds}` and `name_the_pattern(spans)` → the pattern with the largest
# sum. Spans are dicts: `row`, `kind` (`"load"`, `"python"`, `"call"`, `"wait"` on the host; `"kernel"`, `"copy"` on the
# device), `name`, `line`, `start_s`, `end_s`. The check calls both functions on random timelines, some with mixed
# patterns. Here are three helpers; the last one finds the gaps and their waits for rule 3:


# %% given
def joined(spans):
    """[start, end] of each stretch in which at
    least one of the spans runs, in order."""
    stretches = []
    for start_s, end_s in sorted((span["start_s"], span["end_s"]) for span in spans):
        if stretches and start_s <= stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], end_s)
        else:
            stretches.append([start_s, end_s])
    return stretches


def overlap_s(span, stretches):
    """How long a span runs within stretches."""
    return sum(
        max(0.0, min(end, span["end_s"]) - max(start, span["start_s"]))
        for start, end in stretches
    )


def gaps(spans):
    """(began_s, ended_s, wait) of each gap; the wait
    is the span that emptied the queue, or None."""
    busy = joined([span for span in spans if span["kind"] in ("kernel", "copy")])
    busy.append([max(span["end_s"] for span in spans)])
    found = []
    for (_, began_s), (ended_s, *_) in zip(busy, busy[1:], strict=False):
        waits = [
            s for s in spans if s["kind"] == "wait" and abs(s["end_s"] - began_s) < 1e-9
        ]
        found.append((began_s, ended_s, waits[0] if waits else None))
    return found


# %% solve="name_the_pattern"
def charges(spans):
    """Seconds of the window by (pattern, line)."""
    charged, of = {}, {}  # the result; the spans by kind
    for span in spans:
        of.setdefault(span["kind"], []).append(span)
    ### BEGIN SOLUTION
    pieces, reached_s, kernels = [], 0.0, joined(of.get("kernel", []))
    for span in sorted(of.get("kernel", []), key=lambda span: span["start_s"]):
        pieces.append(
            ("gpu", span, max(0.0, span["end_s"] - max(span["start_s"], reached_s)))
        )
        reached_s = max(reached_s, span["end_s"])
    for span in of.get("copy", []):
        pieces.append(
            ("copy", span, span["end_s"] - span["start_s"] - overlap_s(span, kernels))
        )
    for began_s, ended_s, wait in gaps(spans):
        for span in of.get("load", []) + of.get("python", []) + of.get("call", []):
            piece_s = overlap_s(span, [[began_s, ended_s]])
            if span["kind"] == "load":
                pieces.append(("data", span, piece_s))
            elif wait:
                pieces.append(
                    (
                        "copy" if wait["name"] == "copy" else "synchronisation",
                        wait,
                        piece_s,
                    )
                )
            else:
                pieces.append(("launch", span, piece_s))
    for pattern, span, piece_s in pieces:
        charged[pattern, span["line"]] = (
            charged.get((pattern, span["line"]), 0.0) + piece_s
        )
    return charged
    ### END SOLUTION


def name_the_pattern(spans):
    """The pattern with the largest share of the window."""
    ### BEGIN SOLUTION
    shares = {}
    for (pattern, _), charged_s in charges(spans).items():
        shares[pattern] = shares.get(pattern, 0.0) + charged_s
    return max(shares, key=shares.get)
    ### END SOLUTION


# %% check="name_the_pattern"
check("name_the_pattern")

# %%
with requires_solution("name_the_pattern"):
    for pattern, step in EXAMPLES.items():
        spans = step_spans(step, MACHINE)
        window_s, charged = max(span["end_s"] for span in spans), charges(spans)
        shares = {
            p: sum(s for (q, _), s in charged.items() if q == p) / window_s
            for p in EXAMPLES
        }
        print(
            f"{pattern:<16}",
            "  ".join(f"{p} {share:4.0%}" for p, share in shares.items()),
        )

# %% [markdown]
# Shares that add up to 100 % are worth more than a list of warnings: they say what *cannot* matter. Copying is 2 % of
# the third step, so pinned memory cannot gain more than 2 % there.

# %% [markdown]
# ## 3. Who is to blame?
#
# A bug report names a line, not just a pattern. The line with the longest span is a bad guess. **Predict:** of the two
# waits in the next picture, which costs more?

# %%
two_waits = [
    *[work("launch", 60, 20)] * 3,
    {"op": "sync", "line": "train.py:21"},
    work("launch", 15, 22),
]
two_waits += [
    {"op": "item", "line": "train.py:23"},
    work("python", 80, 24),
    work("launch", 20, 25),
]
figure, axes = style.subplots(figsize=(9, 2.6))
waiting = step_spans(two_waits, MACHINE, count=1)
axes = draw_timeline(axes, as_timeline(waiting), title="Two waits (modelled A100)")

# %%
waits = {"train.py:21": "the long one", "train.py:23": "the short one"}
predict("dearer", "The wait that costs more is", choices=tuple(waits.values()))

# %% [markdown]
# Write `blame(spans, pattern)`, which returns the line with the largest charge for that pattern (the check uses only
# patterns for which some line is charged). You may use your `charges`. Until you pass `name_the_pattern`, `check`
# reminds you of it here too; in grading, a correct `charges` replaces yours.


# %% solve="blame"
def blame(spans, pattern):
    """The line that costs the step most by `pattern`."""
    ### BEGIN SOLUTION
    by_line = {
        line: charged_s
        for (of, line), charged_s in charges(spans).items()
        if of == pattern
    }
    return max(by_line, key=by_line.get)
    ### END SOLUTION


# %% check="blame"
check("blame")

# %%
with requires_solution("blame"), reveal_prediction("dearer") as truth:
    print("two waits, synchronisation:", blame(waiting, "synchronisation"))
    print("synchronize() waits for a device that is busy; without it, the host would")
    print("wait later. item() leaves the device without work before 80 µs of Python.")
    truth(waits.get(blame(waiting, "synchronisation")))
    for (pattern, line), charged_s in sorted(
        charges(waiting).items(), key=lambda item: -item[1]
    )[:5]:
        print(f"{pattern:<16} {line:<12} {units.seconds(charged_s)}")

# %% [markdown]
# ## 4. What would a fix gain?
#
# A share of 60 % looks like a gain of 2.5×. **Predict:** in the synchronisation example above, 70 % of the window is
# charged to `.item()`. If you remove only the three calls, how much faster is the step?

# %%
predict("no_items", "Without the three items, the speedup is", unit="times")

# %%
with reveal_prediction("no_items") as truth:
    with_items = EXAMPLES["synchronisation"]
    before_s = step_s(with_items, MACHINE)
    after_s = step_s([one for one in with_items if one != ITEM], MACHINE)
    print("modelled, with items:   ", units.seconds(before_s), "per step")
    print("modelled, without items:", units.seconds(after_s), "per step")
    print("the device still waits for the host's Python, which the wait had hidden")
    truth(before_s / after_s)

# %% [markdown]
# A share is roughly the **most** that can be gained: when one cause is removed, the next one limits the step. To know
# the gain, run the step again without the cause. Deck [003] calls this mock components: a loader that always returns
# the same batch shows how fast training can get, and a trainer that throws batches away shows how fast the loader can
# get.
#
# Deck [004] recommends asking first: *how much could be gained, and is it worth it?* Then fix the cause with the
# largest gain for the least work, and **profile again**: after each fix, a different cause is the largest. (Practice
# section 11 removes five causes in turn and compares the gains.)

# %% [markdown]
# ## 5. Six things wrong with one script
#
# Here is a training script. It runs on a `job`, which computes the real losses of a small network, but takes its
# times from a modelled GPU. Six things in the script cost time and do not change the result:


# %% given
def train_slowly(job):
    """The loss of each step."""
    losses = []
    for number in job.order:
        batch = job.read(number)
        loss = job.forward(job.to_device(batch))
        losses.append(job.item(loss))
        job.backward(loss)
        for name in job.parameters:
            job.update(name)
        job.empty_cache()
    return losses


def example_job():
    """A fresh job: 14 steps over four batches on a modelled A100."""
    costs = {
        "read_s": 5e-4,
        "forward_s": 25e-6,
        "backward_s": 50e-6,
        "convert_s": 10e-6,
        "update_s": 3e-6,
        "trim_s": 3e-4,
    }
    sizes = {"layers": 4, "width": 5, "samples": 8, "batch_bytes": 2 << 20}
    plan = JobPlan(
        seed=7, order=(2, 0, 1, 3, 3, 1, 0, 2, 2, 1, 0, 3, 1, 2), **sizes, **costs
    )
    return SmallTraining(VirtualGPU(VirtualMachine.of("A100").warm()), plan)


# %%
job = example_job()
losses = train_slowly(job)
slow, slow_program = job.gpu.timeline, job.gpu.program
slow_step_s = slow.makespan_s / len(job.order)
print(
    f"modelled: {units.seconds(slow.makespan_s)}, "
    f"device busy {slow.busy_s('kernel', 'copy') / slow.makespan_s:.0%} of it"
)

# %%
figure, axes = style.subplots(figsize=(9, 3))
axes = draw_timeline(axes, slow, start_s=2 * slow_step_s, end_s=4 * slow_step_s)
title = axes.set_title("Two steps (modelled A100)")

# %% [markdown]
# **Predict:** what are the six, and how much faster will the run be without them?

# %%
predict("which_six", "The six are")
predict("all_mended", "Without them, the speedup of the run is", unit="times")

# %% [markdown]
# `help(SmallTraining)` lists everything that you need:
#
# | call | |
# |---|---|
# | `job.read(number, pin_memory=False)` | reads and decodes a batch; the data of a batch number never change |
# | `job.to_device(batch, non_blocking=False)` | copies the batch to the device; all batches fit into its memory |
# | `job.to_channels_last()` | converts the weights' layout; without it, each layer converts its data every time |
# | `job.forward(batch)`, `job.backward(loss)` | a forward pass, which returns the loss, and a backward pass |
# | `job.update(name)`, `job.update_all()` | the optimizer, for one parameter or for all at once |
# | `job.item(loss)` | returns the loss as a number; the host waits for it |
# | `job.empty_cache()` | recommended by deck [002]; it waits for the device, and memory must be allocated again |
#
# Write `train(job)`, which returns the same losses (numbers, from `job.item`) as `train_slowly(job)`. Each fix counts
# separately. The check replays your program on random sizes and looks for one fix in each of six areas: reading
# batches, copying them, reading losses, the optimizer, memory and layout. You lose no points for copying a batch again
# in each step, if no copy blocks the host. The loss curve must stay the same.


# %% solve="planted"
def train(job):
    """The loss of each step, without the six inefficiencies."""
    ### BEGIN SOLUTION
    job.to_channels_last()
    inside, losses = {}, []
    for number in job.order:
        if number not in inside:
            inside[number] = job.to_device(
                job.read(number, pin_memory=True), non_blocking=True
            )
        losses.append(job.forward(inside[number]))
        job.backward(losses[-1])
        job.update_all()
    return [job.item(loss) for loss in losses]
    ### END SOLUTION


# %% check="planted"
check("planted")

# %%
with (
    requires_solution("planted"),
    reveal_prediction("which_six", "all_mended") as truth,
):
    job = example_job()
    assert np.allclose(losses, train(job)), "the loss curve changed"
    fast, fast_program = job.gpu.timeline, job.gpu.program
    told = units.seconds(slow.makespan_s), units.seconds(fast.makespan_s)
    print("modelled: before {}, after {}".format(*told))
    truth(all_mended=slow.makespan_s / fast.makespan_s)

# %% [markdown]
# What happened to the six? The next cell counts what each program does up to its last kernel. The training itself
# stays the same. (`host_work` covers reading and the time that `empty_cache` costs; an `item` after the last kernel
# delays nothing.)


# %%
def asked_for(program):
    """How many times a program does each thing, up to its last kernel."""
    last = max(at for at, one in enumerate(program) if one["op"] == "launch")
    times = {}
    for one in program[:last]:
        blocks = "blocking" if one.get("non_blocking") is False else ""
        what = f"{one['op']} {one.get('name', blocks).partition(' ')[0]}"
        times[what] = times.get(what, 0) + 1
    return {what: count for what, count in times.items() if "alloc" not in what}


with requires_solution("planted"):
    before, after = asked_for(slow_program), asked_for(fast_program)
    for what in sorted(before | after):
        print(f"{what:<18}{before.get(what, 0):>4} → {after.get(what, 0)}")

# %%
with requires_solution("planted"):
    figure, rows = style.subplots(2, 1, figsize=(9, 5))
    for axes, line, name in zip(rows, (slow, fast), ("before", "after"), strict=True):
        share = units.percent(line.busy_s("kernel") / line.makespan_s, digits=2)
        title = f"{name} (modelled A100): {units.seconds(line.makespan_s)}, "
        title += f"kernels run {share} of it"
        axes = draw_timeline(axes, line, end_s=slow.makespan_s, title=title)
    rows[0].get_legend().remove()

# %% [markdown]
# Each of the six looks cheap in the script, but together they took seven tenths of the run. What remains at the
# beginning is reading: four batches must be decoded once. Which pattern bounds the run now, and what would you do next?
# (Reading ahead in other processes is the subject of lab 4.)

# %% [markdown]
# ## 6. Your own loop
#
# Now apply all of this to a real loop on this machine: on its GPU if it has one, otherwise on its CPU. On a CPU there
# is only the host, and "compute" is the time of the operators themselves. `diagnose` records some steps, divides
# their time as you did, and predicts the speed-up from fixing each cause. Then it *tries out* the fix that would gain
# most, if the loop can run without that cause. It can run without data (by keeping one batch) and, on a GPU, without
# reading losses. It cannot run without its computation, however much that would gain. The first step is a warm-up and
# is left out, so 30 steps give a report on 29. **Predict:** what is the loop below bound by, and what share of a step
# does that take? Recording the loop and trying out the fix take about ten seconds.

# %%
bounds = ("data", "launch", "compute", "synchronisation")
predict("loop_bound", "The loop is bound by", choices=bounds)
predict("loop_share", "Its share of a step is", unit="%")


# %%
def batches(count):
    """Batches that are made number by number, as in many home-made data sets."""
    draw = np.random.default_rng(0)
    while True:
        yield torch.tensor(
            [[float(value) for value in draw.normal(size=96)] for _ in range(count)]
        )


# %%
def my_loop(device):
    """A training loop. Change it: it is yours."""
    net = small_net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step(x):
        loss = net(x.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return TorchLoop(step, data=batches(32 * batch_size), device=device, name="my_loop")


# %%
# Layers this small are slower with more threads, and much slower on a busy machine:
# most of the time, one thread then waits for another.
where = "cuda" if best_device() == "cuda" else "cpu"
with torch_threads(1):
    report = diagnose(my_loop(where), steps=train_steps)

# %%
with reveal_prediction("loop_bound", "loop_share") as truth:
    print(report)
    pictures = report.figure()
    bound = report.attribution.dominant
    truth(loop_bound=bound, loop_share=report.shares[bound])

# %% [markdown]
# Compare "predicted" with "tried": the first comes from the trace alone, the second from a loop that keeps one batch.
# If they differ, ask what the recording itself cost: operators that take only microseconds appear slower while they are
# recorded.

# %% [markdown]
# Now profile a loop of your own: from this course, from work, or `my_loop` with a different model. You may use a GPU,
# but a loop on a CPU earns the same points.
#
# 1. Write `before` and `after`, two `TorchLoop`s that differ in **one** change. Keep the model, batch size and samples:
#    the computation must stay the same, and the judge compares the FLOPs.
# 2. Read `diagnose(before)`. **Predict** the step time after your change from the predicted gain.
# 3. Run `hand_in(before, after)`. It records both, after a warm-up, into `own_before.json.gz` and `own_after.json.gz`
#    next to this notebook. Your home folder, your name and the machine's name are removed from them. **Hand in both
#    files with the notebook.**
#
# An example that you can start from:
#
# ```python
# from edl_labs.trace import hand_in
#
# before = my_loop(where)
# after = TorchLoop(before.step, data=[next(batches(32 * batch_size))], device=where)
# hand_in(before, after)
# ```

# %%
predict("own_after", "After my change, a step takes", unit="ms")

# %% [markdown]
# Then write `own_change(asked)`. For `"cause"` it returns the cause that limits `before` (a name from the report,
# such as `"launch"`). For `"place"` it returns the line or operator that the report shows next to that cause, and for
# `"change"` your change in a few words. The judge diagnoses both files itself. The cause must be one of the two
# largest, and its share must fall. The report on `before` predicts the time of a step without that cause. A step of
# `after` may be faster than this, but by at most a tenth of a step of `before`. Your prediction does not affect your
# points.


# %% solve="own_traces"
def own_change(asked):
    """Your answer to "cause", "place" or "change", as text."""
    ### BEGIN SOLUTION
    answers = {
        "cause": "data",
        "place": "dataloader",
        "change": "each batch is drawn as one array",
    }
    return answers[asked]
    ### END SOLUTION


# %% check="own_traces"
check("own_traces")

# %%
with reveal_prediction("own_after"):
    print("the step time after your change is the second time that hand_in printed")

# %% [markdown] explain="own_loop"
# **Explain (read by your instructor).** Explain the gap between the gain that you predicted and the gain that the two
# traces show, in three to five sentences. Name one thing in the report that is easy to misread.

# %% [markdown]
# ## 7. When to look
#
# A trace of a whole training run would be enormous, and its first steps show only the warm-up. `torch.profiler` accepts
# a schedule: `wait` steps in which it does nothing, `warmup` steps in which it runs and discards its data, and `active`
# steps that are recorded. This cycle runs `repeat` times (0 means forever). Deck [000] uses `schedule(wait=1, warmup=1,
# active=3, repeat=2)` and stops its loop at step (1 + 1 + 3) * 2; deck [002] uses `wait=2, warmup=2, active=5,
# repeat=0`.
#
# **Predict:** how many steps does deck [000]'s loop record, and into how many traces? Is step 2 recorded? Step 5?
# When does deck [002]'s profiler stop?

# %%
predict("recorded", "Deck [000]'s loop records", unit="steps")
predict("traces", "It writes", unit="traces")

# %% [markdown]
# Write `schedule_states(steps, wait=..., warmup=..., active=..., repeat=..., skip_first=...)` → a list with the state
# at each of the steps 0 to `steps` − 1: `"none"`, `"warmup"`, `"record"`, or `"record and save"` at the step that ends
# a recording. `skip_first` idle steps (`"none"`) come before the first cycle. One rule is not in `torch.profiler`: each
# cycle waits `stretch` times as long as the previous one, since a long run needs fewer traces later. All arguments are
# whole numbers; `active` and `stretch` are 1 or more.


# %% solve="schedule_states"
def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    """What a scheduled profiler does at each of the first `steps` steps."""
    ### BEGIN SOLUTION
    states, cycles = ["none"] * skip_first, 0
    while len(states) < steps and (not repeat or cycles < repeat):
        states += ["none"] * (wait * stretch**cycles) + ["warmup"] * warmup
        states += ["record"] * (active - 1) + ["record and save"]
        cycles += 1
    return (states + ["none"] * steps)[:steps]
    ### END SOLUTION


# %% check="schedule_states"
check("schedule_states")

# %%
with (
    requires_solution("schedule_states"),
    reveal_prediction("recorded", "traces") as truth,
):
    states = schedule_states(12, wait=1, warmup=1, active=3, repeat=2)
    letters = {"none": "N", "warmup": "W", "record": "R", "record and save": "S"}
    print("deck [000]:", " ".join(letters[state] for state in states))
    recorded = sum(state.startswith("record") for state in states)
    print(f"{recorded} steps in {states.count('record and save')} traces")
    truth(recorded=recorded, traces=states.count("record and save"))
    endless = schedule_states(900, wait=2, warmup=2, active=5, repeat=0)
    print(
        f"deck [002]: {endless.count('record and save')} "
        f"traces in 900 steps, one every {2 + 2 + 5}"
    )

# %% [markdown]
# Deck [000] records six steps in two traces. (If you cannot use a `with` block, deck [002]'s `prof.start()` and
# `prof.stop()` do the same.) Note `prof.step()` at the end of each step: without it, the profiler stays at step 0
# forever and records nothing at all. The warm-up is needed because switching the profiler on costs time that would show
# up in the trace. Deck [000] also sets `record_shapes=True` (which product was it?), `profile_memory=True` (which
# operator allocated memory?) and `with_stack=True` (which line was it?). Each of them makes every recorded operator
# slower, so record only what you will read.

# %% [markdown]
# ## 8. Practice: a profiler that only looks now and then
#
# From here on, everything is optional and carries no points.

# %%
figure, axes = style.subplots(figsize=(9, 1.8))
calls = (("load", 0, 34), ("fit", 34, 22), ("log", 56, 3), ("load", 59, 32))
for name, start_ms, lasts_ms in calls:
    axes.barh(name, lasts_ms, left=start_ms, color=style.BLUE)
for look_ms in range(5, 100, 10):
    axes.axvline(look_ms, color=style.RED, linestyle=":")
axes.set(
    xlabel="ms", title="Which function runs (drawn by hand), and ten samples of it"
)

# %% [markdown]
# In the picture above, each bar is a function call. A *tracing* profiler (cProfile, torch.profiler) records where
# each bar begins and ends, and slows down code with many calls. A *sampling* profiler (py-spy, scalene) checks a
# hundred times a second what is running (the dotted lines), even from outside the process. It misses `log`, which
# runs between two samples.
#
# > **stack**: the functions that are running, each called by the one before it. **GIL**: Python's lock, which only one
# > thread can hold at a time.
#
# Deck [000] shows py-spy:
#
# ```text
# Total Samples 300
# GIL: 24.33%, Active: 100.00%, Threads: 2
# %Own    %Total  OwnTime  TotalTime  Function (filename:line)
# 36.00%  36.00%  0.360s   0.360s     fit (implicit/als.py:139)
# 26.00%  26.00%  0.260s   0.260s     fit (implicit/als.py:141)
# 23.00%  23.00%  0.230s   0.230s     fit (implicit/als.py:160)
# 13.00%  13.00%  0.580s   0.580s     tocsr (scipy/sparse/csc.py:151)
#  0.00%   0.00%  0.130s   0.130s     bm25_weight (implicit/nearest_neighbours.py:149)
# ```
#
# **Predict:** `tocsr` has 13 % of the samples and 0.58 s; the first `fit` has 36 % and 0.36 s. How can both be true?

# %%
predict("both_true", "Both are true because")

# %%
own_s = [0.36, 0.26, 0.23, 0.58, 0.12, 0.01, 0.04, 0.13, 0.03, 0.05, 0.01]
# The slide has 23 rows, of which these eleven have time of their own; the table above
# shows five of them.
with reveal_prediction("both_true"):
    print(
        f"300 samples at 100 Hz are {300 / 100:.1f} s; the own times "
        f"of the rows that deck [000] shows add up to {sum(own_s):.2f} s"
    )
    print(
        f"the own shares add up to {36 + 26 + 23 + 13 + 1 + 1} %; "
        f"tocsr would have {0.58 / 3:.0%} of the whole run, not 13 %"
    )
    print("Shares are of the last second, but seconds are of the whole run.")

# %% [markdown]
# (The slide's 23 rows contain 1.82 s of the 3.0 s: the screen ends there, and the rest belongs to functions below its
# edge.) Each row of a sampler's screen answers both "what is it doing now?" and "what has it done so far?".
#
# Write `sampler_table(samples, rate_hz=..., window=...)`. A sample is a dict: `stack` (frames from the outermost to the
# one that is running), `idle` (the thread was only waiting) and `gil` (it held Python's lock). Return a dict:
#
# * `"active"` and `"gil"`: of all samples of the run, the share that were not idle, and the share that held the lock;
# * `"rows"`: for each frame on the stack of an **active** sample, a dict with `own`, `total`, `own_s` and `total_s`.
#   `own` and `total` are shares of the last `window` samples (idle samples count in the denominator, but not in any
#   row); `own_s` and `total_s` are seconds of the whole run. A sample represents one tick of `1 / rate_hz` seconds. A
#   frame that is on a stack twice still counts for one tick.


# %% solve="read_a_sampler"
def sampler_table(samples, *, rate_hz, window):
    """The header and the rows of a sampling profiler's screen."""
    ### BEGIN SOLUTION
    rows = {}
    recent = len(samples) - window
    for number, sample in enumerate(samples):
        if sample["idle"]:
            continue
        for frame in set(sample["stack"]):
            row = rows.setdefault(
                frame, dict.fromkeys(("own", "total", "own_s", "total_s"), 0.0)
            )
            for column in (
                ("total", "own") if frame == sample["stack"][-1] else ("total",)
            ):
                row[f"{column}_s"] += 1 / rate_hz
                row[column] += (number >= recent) / window
    active = sum(not sample["idle"] for sample in samples) / len(samples)
    return {
        "active": active,
        "gil": sum(sample["gil"] for sample in samples) / len(samples),
        "rows": rows,
    }
    ### END SOLUTION


# %% check="read_a_sampler"
check("read_a_sampler")

# %% [markdown]
# A sampler takes a dozen lines of Python: a thread that reads another thread's stack. **Predict:** what share of its
# time does the loop below spend in `multiply`, and how far off will 100 samples per second be?

# %%
predict("in_multiply", "The share of samples in `multiply` is", unit="%")


# %%
def frames_of(thread):
    """The stack of a thread, from the outermost frame to the one that runs."""
    import sys
    import traceback

    frame = sys._current_frames().get(thread.ident)
    stack = traceback.extract_stack(frame)[3:] if frame else []
    return [f"{f.name} (line {f.lineno})" for f in stack] or ["thread"]


# %%
def sampled(work, *, rate_hz, spent_s):
    """Samples of the stack of `work()`, which runs again
    and again for `spent_s` seconds in its own thread."""
    end_s, samples = time.monotonic() + spent_s, []
    thread = threading.Thread(
        target=lambda: [work() for _ in iter(lambda: time.monotonic() < end_s, False)]
    )
    thread.start()
    while thread.is_alive():
        time.sleep(1 / rate_hz)
        samples.append({"stack": frames_of(thread), "idle": False, "gil": False})
    return samples


# %%
table = np.random.default_rng(0).normal(size=(300, 300))


def multiply():
    return table @ table @ table @ table


def normalize():
    return [sum(row) for row in table.tolist()]


def both():
    multiply(), normalize()


# %%
with requires_solution("read_a_sampler"), reveal_prediction("in_multiply") as truth:
    samples = sampled(both, rate_hz=100, spent_s=sample_seconds)
    rows = sampler_table(samples, rate_hz=100, window=min(100, len(samples)))["rows"]
    print(f"measured here: {len(samples)} samples")
    for frame in sorted(rows, key=lambda frame: -rows[frame]["own_s"])[:5]:
        row = rows[frame]
        shares = f"{row['own']:7.1%} {row['total']:7.1%}"
        print(f"{shares} {row['own_s']:7.2f} s {row['total_s']:7.2f} s  {frame}")
    spent_s = {frame: row["own_s"] for frame, row in rows.items()}
    inside_s = sum(spent_s[frame] for frame in spent_s if "multiply" in frame)
    truth(inside_s / sum(spent_s.values()))

# %% [markdown]
# A share p of n samples is uncertain by about √(p(1−p)/n): with 200 samples, a share of 50 % has an uncertainty of ±
# 3.5 percentage points. Rows with only a few samples mean nothing. This sampler also runs inside the program: while
# pure Python runs, it waits up to 5 ms for the lock, and it gets the lock most easily when NumPy releases it. That
# biases its shares towards `multiply`, easily by ten percentage points. py-spy reads another process's memory and needs
# no lock: where the two differ, trust py-spy.
#
# The next cell attaches the real py-spy to this notebook while one of its threads works. Reading another process
# requires permission; without it, the cell shows the reason. The cell takes five seconds and starts another program.

# %%
stop_s = time.monotonic() + sample_seconds + 3
worker = threading.Thread(
    target=lambda: [both() for _ in iter(lambda: time.monotonic() < stop_s, False)]
)
worker.start()
seen = attach(duration_s=sample_seconds)
print(seen.refused or f"measured here: {seen.total} samples from outside")
for frame, share in list(seen.own().items())[:4] if not seen.refused else []:
    print(f"{share:7.1%}  {frame[:90]}")
worker.join()

# %% [markdown]
# The next cell runs three profilers on one program. Half of the program makes many tiny calls, the other half makes
# none. **Predict:** which profiler reports the largest share for `add` and `many_calls`, and why? The program runs once
# under each profiler and once without one, which takes about half a minute.

# %%
profilers = ("cProfile", "py-spy", "scalene")
predict("bills_calls", "The share of `add` is largest with", choices=profilers)

# %%
PROGRAM = f"""
def add(a, b): return a + b
def many_calls(total=0):
    for i in range(40_000): total = add(total, i)
def no_calls(total=0):
    for i in range(120_000): total = total + i
for _ in range({int(40 * sample_seconds)}): many_calls(), no_calls()
"""
with TemporaryDirectory() as folder:
    (script := Path(folder) / "program.py").write_text(PROGRAM)
    with reveal_prediction("bills_calls") as truth:
        told = "not run: compare_profilers is False in the parameters"
        print(side_by_side(script) if compare_profilers else told)
        print("it records every call and return, and bills this to code that calls")
        truth("cProfile")

# %% [markdown]
# Compare cProfile's seconds with those of the run without a profiler, and its shares with those of the samplers. The
# samplers' shares are closer to the truth, but samplers do not count calls (and scalene takes seconds to start, which
# are included in its run here).
#
# (Deck [003] shows cProfile's output as a picture: `python -m cProfile -o my.cprof my.py` writes a file, and
# `pyprof2calltree -k -i my.cprof` displays it; `snakeviz my.cprof` needs no desktop program.)
#
# Deck [000] also shows nvprof and `torch.utils.bottleneck`. nvprof does not support Ampere and later GPUs (use `nsys`
# and `ncu`), `torch.utils.bottleneck` has been removed from torch, and TensorBoard's profiler plugin is deprecated:
# open traces in Perfetto. `nsys stats` still prints a table like nvprof's. Here are four rows of it:
#
# ```text
# Time(%)      Time      Calls      Avg      Min      Max      Name
# 58.73%    737.97ms    1000    737.97us  424.77us  1.1405ms  subtractPSFLoop_kernel
# 38.39%    482.31ms    1001    481.83us  475.74us  492.16us  findPeakLoop_kernel
#  1.87%    23.450ms       2    11.725ms  11.721ms  11.728ms  [CUDA memcpy HtoD]
#  1.01%    12.715ms    1002    12.689us  2.1760us  10.502ms  [CUDA memcpy DtoH]
# ```
#
# The times add up to 1256.4 ms, all of it on the device: the table does not say how long the program ran. And a mean of
# 12.69 µs with a maximum of 10.502 ms means one large copy and a thousand small ones of about 2.2 µs: the mean is not
# the time of any of them.
#
# Two tools replaced nvprof, and they answer different questions. *Nsight Systems* records a whole program and shows the
# host's calls above kernels and copies: `nsys profile -o run python train.py`, then `nsys stats run.nsys-rep`. *Nsight
# Compute* runs one kernel several times and counts inside it: `ncu -k regex:gemm -c 1 --set full python train.py`. Its
# first section compares the kernel with the two roofs of lab02. Here are two kernels (the figures are made up, but
# `ncu` prints rows like these):
#
# ```text
# Section: GPU Speed Of Light Throughput     kernel 1    kernel 2
# Duration                   us                 104.2         9.8
# Memory Throughput           %                  90.5        11.3
# DRAM Throughput             %                  90.5         6.1
# Compute (SM) Throughput     %                   8.0        12.4
# ```
#
# **Predict:** which kernel is limited by memory, and which is limited by neither roof?

# %%
which = ("kernel 1", "kernel 2", "both")
predict("by_memory", "The kernel limited by memory is", choices=which)
predict("by_neither", "The kernel limited by neither roof is", choices=which)

# %%
with reveal_prediction("by_memory", "by_neither") as truth:
    print("90 % of the memory's rate is the roof; 11 and 12 % are latency:")
    print("there are too few blocks, or too little work; check launches and occupancy")
    truth(by_memory="kernel 1", by_neither="kernel 2")

# %% [markdown]
# ## 9. Practice: a profiler of your own, layer by layer
#
# > **hook**: a function of yours that torch calls before or after one of its own functions.
#
# "Which layer is slow?" is a question about modules, and torch has hooks for exactly that. A module's
# `register_forward_pre_hook` and `register_forward_hook` run before and after its forward pass;
# `register_full_backward_pre_hook` and `register_full_backward_hook` run before and after its backward pass. Each
# returns a handle; `handle.remove()` removes the hook.
#
# Write the class `LayerProfiler(model, clock)`:
#
# * `with LayerProfiler(model, clock) as profiler:` installs hooks on **every** module of `model.named_modules()`, under
#   its name there (`"model"` for the outermost one, whose name there is empty), and removes **all** of them at the end.
# * `profiler.table()` → `{name: {"calls", "forward_self_s", "forward_total_s", "backward_self_s",
#   "backward_total_s"}}`, added up over all calls. Modules nest and may be called more than once. Self time excludes
#   the modules inside.
# * `profiler.trace()` → `{"traceEvents": [...]}`, the trace-event format that Perfetto and chrome://tracing open. It
#   contains one *complete* event for the forward pass and one for the backward pass of each call. An event is a dict
#   with `name` (of the module), `cat` (`"forward"` or `"backward"`), `ph` (`"X"`), `ts` and `dur` (**microseconds**,
#   from the clock), `pid` and `tid` (you can use 0).
#
# Hooks must return `None`: any other value that a hook returns *replaces* the module's input or output.
#
# The model launches kernels, which run later. `clock.now_s()` reads the clock, `clock.synchronize()` waits for the
# device. **Predict:** what does a profiler report if it forgets to wait? The check builds models whose kernels take
# known times on a virtual clock; every module's input requires a gradient, so every hook runs.

# %%
kernel_times = ("the kernels' times", "only launch times", "both")
predict("no_wait", "Without waiting, it reports", choices=kernel_times)


# %% solve="layer_profiler"
class LayerProfiler:
    """Seconds of every module of a model, forward
    and backward, while the with block runs."""

    def __init__(self, model, clock):
        self.model, self.clock = model, clock
        # The table's rows by name, the trace events, the stack of passes that are
        # running, and the handles of the hooks.
        self.rows, self.events, self.running, self.handles = {}, [], [], []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self._watch(name or "model", module)
        return self

    def __exit__(self, *error):
        ### BEGIN SOLUTION
        for handle in self.handles:
            handle.remove()
        ### END SOLUTION

    def _watch(self, name, module):
        """Create a module's row, and install its
        four hooks, which call _begin and _end."""
        phases = [
            f"{phase}_{kind}_s"
            for phase in ("forward", "backward")
            for kind in ("self", "total")
        ]
        self.rows[name] = {"calls": 0} | dict.fromkeys(phases, 0.0)
        ### BEGIN SOLUTION
        self.handles += [
            module.register_forward_pre_hook(lambda *_: self._begin()),
            module.register_forward_hook(lambda *_: self._end(name, "forward")),
            module.register_full_backward_pre_hook(lambda *_: self._begin()),
            module.register_full_backward_hook(lambda *_: self._end(name, "backward")),
        ]
        ### END SOLUTION

    def _begin(self):
        """A pass through a module begins now: push it on self.running."""
        ### BEGIN SOLUTION
        self.clock.synchronize()
        self.running.append([self.clock.now_s(), 0.0])
        ### END SOLUTION

    def _end(self, name, phase):
        """The pass that began last ends now: pop
        it, fill its row, append its event."""
        ### BEGIN SOLUTION
        self.clock.synchronize()
        began_s, inside_s = self.running.pop()
        total_s = self.clock.now_s() - began_s
        if self.running:
            self.running[-1][1] += total_s
        self.rows[name]["calls"] += phase == "forward"
        self.rows[name][f"{phase}_self_s"] += total_s - inside_s
        self.rows[name][f"{phase}_total_s"] += total_s
        timing = {"ts": 1e6 * began_s, "dur": 1e6 * total_s, "pid": 0, "tid": 0}
        self.events.append({"name": name, "cat": phase, "ph": "X", **timing})
        ### END SOLUTION

    def table(self):
        """Calls and seconds by module."""
        return self.rows

    def trace(self):
        """The calls as trace events."""
        return {"traceEvents": self.events}


# %% check="layer_profiler"
check("layer_profiler")

# %%
with reveal_prediction("no_wait") as truth:
    print("the kernels' time is billed to whatever waits next")
    truth("only launch times")

# %% [markdown]
# `LayerProfiler` needs only a model and a clock, and both may be real. **Predict:** the blocks below all have the same
# shape (`small_net` is defined below the imports). Which is slowest? Does the backward pass take twice as long as the
# forward pass?


# %%
predict("slowest_block", "The slowest block is", choices=("0", "1", "2"))
predict(
    "back_times", "Compared with the forward pass, the backward pass takes", unit="%"
)

# %%
with requires_solution("layer_profiler"), torch_threads(1):
    net, x = small_net(), torch.randn(32 * batch_size, 96, requires_grad=True)
    net(x).sum().backward()
    with LayerProfiler(net, clock_for("cpu")) as profiler:
        for _ in range(train_steps):
            net(x).sum().backward()

# %%
with (
    requires_solution("layer_profiler"),
    reveal_prediction("slowest_block", "back_times") as truth,
):
    print(f"measured on {describe('cpu').device_name}, per step:")
    print("        forward self     total  backward self     total")
    keys = ("forward_self_s", "forward_total_s", "backward_self_s", "backward_total_s")
    for name, row in profiler.table().items():
        times = [units.seconds(row[key] / row["calls"]) for key in keys]
        print("{:<6} {:>13} {:>9} {:>14} {:>9}".format(name, *times))
    blocks = {name: profiler.table()[name]["forward_total_s"] for name in "012"}
    whole = profiler.table()["model"]
    back = whole["backward_total_s"] / whole["forward_total_s"]
    truth(slowest_block=max(blocks, key=blocks.get), back_times=back)

# %%
with requires_solution("layer_profiler"):
    events = profiler.trace()["traceEvents"]
    one_step = events[-len(events) // train_steps :]
    figure, axes = style.subplots(figsize=(9, 2.6))
    axes = draw_nested(axes, one_step, title="One step of the network (measured here)")

# %% [markdown]
# Such a picture is a *flame graph* over time: each module is drawn below the module that called it. Hooks cost time
# too, because each of them waits for the device. So profile only some steps, and expect a profiled step to be slower
# than a normal one. **Save** `json.dumps(profiler.trace())` to a file and open it at ui.perfetto.dev.

# %% [markdown]
# ## 10. Practice: 100 % of what?
#
# Deck [003] asks for "utilization of each GPU (should be close to 100%)". What `nvidia-smi` shows is the share of the
# last moments in which **at least one kernel** was running. **Predict:** a kernel of one thread block runs all the time
# on an A100 with 108 SMs. What does `nvidia-smi` say? What share of the SMs is busy?

# %%
predict("smi_says", "For one block, nvidia-smi says", unit="%")
predict("at_work", "The share of SMs at work is", unit="%")
predict("at_work_109", "With 109 blocks, the share of SMs at work is", unit="%")

# %% [markdown]
# Write `utilisation(kernels, sm_count=..., window_s=...)` → `(utilisation, sm_share)`. A kernel is a dict with
# `start_s`, `end_s` and `blocks`; all are within a window of `window_s` that starts at 0. The first number is the
# monitor's. The second is the share of the SMs' time in which they had work. An SM runs one block at a time, all blocks
# of a kernel take equally long, and a kernel with more blocks than SMs runs in waves (lab 1): 109 blocks on 108 SMs are
# two waves, and nearly half of the places in them are empty. Kernels may run at the same time, each on its own SMs.


# %% solve="utilisation_lies"
def utilisation(kernels, *, sm_count, window_s):
    """(utilisation, sm_share): time with any kernel, and
    SM time with a block, as shares of the window."""
    ### BEGIN SOLUTION
    any_s = sm_s = reached_s = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel["start_s"]):
        any_s += max(0.0, kernel["end_s"] - max(kernel["start_s"], reached_s))
        reached_s = max(reached_s, kernel["end_s"])
        waves = -(-kernel["blocks"] // sm_count)
        sm_s += (kernel["end_s"] - kernel["start_s"]) * kernel["blocks"] / waves
    return any_s / window_s, sm_s / (sm_count * window_s)
    ### END SOLUTION


# %% check="utilisation_lies"
check("utilisation_lies")

# %%
asked = ("smi_says", "at_work", "at_work_109")
with requires_solution("utilisation_lies"), reveal_prediction(*asked) as truth:
    working = {}
    for blocks in (1, 54, 108, 109, 216):
        kernels = [{"start_s": 0.0, "end_s": 1e-3, "blocks": blocks}]
        said, working[blocks] = utilisation(kernels, sm_count=108, window_s=1e-3)
        told = f"the monitor says {said:.0%}, SMs at work {working[blocks]:6.1%}"
        print(f"{blocks:>4} blocks on 108 SMs (computed): {told}")
    truth(smi_says=said, at_work=working[1], at_work_109=working[109])

# %% [markdown]
# For one block, the two numbers are 100 % and 0.9 %. A low utilisation proves that something is wrong; a high one
# proves nothing: even a busy SM may wait for memory all the time. (Deck [003]'s other checks say even less. The
# memory shown is what processes have *reserved*, whether they use it or not; near the maximum, the allocator begins
# to flush its cache (lab06). Any other process on `nvidia-smi`'s list shares the device with yours. A GPU at its
# temperature or power limit lowers its clock.)

# %% [markdown]
# ## 11. Practice: which fix gains most
#
# Section 4 removed one cause by hand. Here you remove each of five causes in turn from the steps in section 2. Write
#
# * `without(step, cause)` → a new step with one cause removed (the given step stays unchanged);
# * `most_to_gain(step, machine)` → `(best, speedups)`: the cause with the largest speed-up (any of them if several are
#   equal), and `{cause: speed-up}` for all five.
#
# `step_s(step, machine)` returns the seconds of a step in the steady state; a step is a list of dicts as in `EXAMPLES`.
# This is how to remove a cause:
#
# | cause | represents | in the step |
# |---|---|---|
# | `"kernels"` | lower precision, better kernels | each launch's `duration_s` is halved |
# | `"launch"` | a captured graph, `torch.compile` | launches in a row become one (see below) |
# | `"synchronisation"` | reading numbers later | `item` and `sync` are removed |
# | `"data"` | one cached batch | `load` is removed |
# | `"copy"` | pinned memory | each `copy` has `pinned` True |
#
# Launches are in a row if there is nothing or only `python` between them. A row becomes **one** launch that lasts as
# long as all of its launches together, and the `python` between them is removed. **All other Python stays where it
# is**: before the first launch of a row, after its last launch, and at both ends of the step. It is not captured.


# %% solve="most_to_gain"
def without(step, cause):
    """The step with a cause removed."""
    ### BEGIN SOLUTION
    if cause == "launch":
        return captured(step)
    gone = {"synchronisation": ("item", "sync"), "data": ("load",)}.get(cause, ())
    changed = [dict(operation) for operation in step if operation["op"] not in gone]
    for operation in changed:
        if cause == "kernels" and operation["op"] == "launch":
            operation["duration_s"] /= 2
        if cause == "copy" and operation["op"] == "copy":
            operation["pinned"] = True
    return changed
    ### END SOLUTION


def captured(step):
    """The step with each row of launches (nothing or only Python between) joined."""
    kept, between = [], []  # what stays; Python since then, not yet decided
    for operation in step:
        if operation["op"] == "python":
            between.append(operation)
            continue
        ### BEGIN SOLUTION
        if operation["op"] == "launch" and kept and kept[-1]["op"] == "launch":
            kept[-1] = {
                **kept[-1],
                "duration_s": kept[-1]["duration_s"] + operation["duration_s"],
            }
        else:
            kept += [*between, operation]
        between = []
        ### END SOLUTION
    return kept + between


def most_to_gain(step, machine):
    """(best, speedups): the cause whose removal
    gains most, and the speed-up of each."""
    ### BEGIN SOLUTION
    now_s, causes = (
        step_s(step, machine),
        ("kernels", "launch", "synchronisation", "data", "copy"),
    )
    speedups = {
        cause: now_s / step_s(without(step, cause), machine) for cause in causes
    }
    return max(speedups, key=speedups.get), speedups
    ### END SOLUTION


# %% check="most_to_gain"
check("most_to_gain")

# %%
with requires_solution("most_to_gain"):
    for pattern, step in EXAMPLES.items():
        best, speedups = most_to_gain(step, MACHINE)
        gains = "  ".join(
            f"{cause[:6]} {gain:.2f}×" for cause, gain in speedups.items()
        )
        print(f"{pattern:<16}{gains}   best: {best}")

# %% [markdown]
# Look for the row in which the cause with the largest gain does not belong to the pattern that bounds the step
# (`kernels` belongs to `gpu`). There, the copy was already pinned, so pinning gains nothing, and only a smaller or a
# hidden copy would help.

# %% [markdown]
# ## 12. Practice: read the monitors
#
# Before any profiler, deck [003] uses tools that are already installed: `watch nvidia-smi` for each GPU, `htop` for the
# cores, and *memtop*, *iotop* and *nettop* for memory, disks and network. They answer one question, *which resource is
# full?*, and cost nothing. The deck's order goes from easy to hard: monitors, timers by hand, mock components, visual
# tools. Each monitor can be misread in its own way, so first watch one number for one second.


# %%
def own_core_shares(spent_s, *, tick_s=0.02):
    """How busy this process was in each tick, while it works and sleeps by turns."""
    shares, end_s = [], time.perf_counter() + spent_s
    while time.perf_counter() < end_s:
        began_s, worked_s = time.perf_counter(), time.process_time()
        if len(shares) % 5 < 2:
            while time.perf_counter() - began_s < tick_s:
                pass
        else:
            time.sleep(tick_s)
        passed_s = time.perf_counter() - began_s
        shares.append((time.process_time() - worked_s) / passed_s)
    return shares


# %%
shares = own_core_shares(min(1.0, sample_seconds))
figure, axes = style.subplots(figsize=(9, 2.6))
for count, line in ((1, ":"), (5, "--"), (15, "-")):
    means = [sum(shares[i - count : i]) / count for i in range(count, len(shares) + 1)]
    ticks = range(count, len(shares) + 1)
    axes.plot(ticks, [100 * mean for mean in means], line, label=f"mean of {count}")
axes.set(xlabel="tick of 20 ms", ylabel="% of a core", ylim=(0, 105))
axes.set_title("One process, averaged in three ways (measured here)")
legend = axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))

# %% [markdown]
# A single reading is 0 or 100; the *moving average* over one period of the program is 40. `nvidia-smi` shows such a
# mean over a few tenths of a second, and `htop` over one or two seconds, so a single reading covers only a short
# moment.
#
# Write `read_monitors(snapshots, machine, tools)` → `(resource, tool)`. There is a snapshot for each second:
#
# | key | what it contains |
# |---|---|
# | `"nvidia-smi"` | for each GPU: `utilisation_percent`, `memory_percent` |
# | `"htop"` | for each core: `user_percent`, `system_percent`, and `iowait_percent` (idle while waiting for a disk) |
# | `"memtop"` | `used_percent` (files that were read count as used), `swap_used_percent`, `swap_byte_per_s` |
# | `"iotop"`, `"nettop"` | `byte_per_s` of all processes together |
#
# `machine` contains the maximum rates of the disks and the link: `disk_byte_per_s` and `link_bit_per_s` (bits!). Take
# the **mean over all snapshots** of every figure; a resource is *full* if its mean reaches `FULL_PERCENT`. The first
# line that applies decides:
#
# | resource | when |
# |---|---|
# | `"memory"` | at least `SWAPPING_BYTE_PER_S` go to or from the swap: everything else follows from that |
# | `"gpu"` | *every* GPU is full: the resources that feed them cannot matter now |
# | `"disk"`, `"network"`, `"cpu"` | full, and the fullest of the three; `"cpu"` is the mean user + system over cores |
# | `"one core"` | a core is full with user + system, for example because of a single Python thread |
# | `"none"` | nothing is full: something is waiting for a response, or for a lock |
#
# `tool` is the name of the next tool. Each of `tools` has a `name`, the `hours` that it takes and the resources that it
# `shows`. Choose the tool that shows this resource and takes the fewest hours.

# %% given
FULL_PERCENT, SWAPPING_BYTE_PER_S = 90, 1_000_000


# %% solve="read_the_monitors"
def read_monitors(snapshots, machine, tools):
    """(resource, tool): what sets the pace, and the quickest tool that shows it."""

    def mean(figures):
        """The mean of some figures."""
        figures = list(figures)
        return sum(figures) / len(figures)

    def columns(monitor):
        """What a monitor shows for each GPU or core, second by second."""
        return zip(*(snapshot[monitor] for snapshot in snapshots), strict=True)

    ### BEGIN SOLUTION
    gpus = [
        mean(one["utilisation_percent"] for one in gpu) for gpu in columns("nvidia-smi")
    ]
    cores = [
        mean(one["user_percent"] + one["system_percent"] for one in core)
        for core in columns("htop")
    ]
    read_byte_per_s = mean(one["iotop"]["byte_per_s"] for one in snapshots)
    received_byte_per_s = mean(one["nettop"]["byte_per_s"] for one in snapshots)
    feeding = {
        "disk": 100 * read_byte_per_s / machine["disk_byte_per_s"],
        "network": 800 * received_byte_per_s / machine["link_bit_per_s"],
        "cpu": mean(cores),
    }
    resource = max(feeding, key=feeding.get)
    if feeding[resource] < FULL_PERCENT:
        resource = "one core" if max(cores) >= FULL_PERCENT else "none"
    if min(gpus) >= FULL_PERCENT:
        resource = "gpu"
    if (
        mean(one["memtop"]["swap_byte_per_s"] for one in snapshots)
        >= SWAPPING_BYTE_PER_S
    ):
        resource = "memory"
    able = [tool for tool in tools if resource in tool["shows"]]
    return resource, min(able, key=lambda tool: tool["hours"])["name"]
    ### END SOLUTION


# %% check="read_the_monitors"
check("read_the_monitors")

# %% [markdown]
# What a monitor cannot say is *why*. A GPU at 100 % may have a single busy SM (section 10), a full core may be copying
# data that could be shared, and a disk that is full for a minute may be in use by others. So the resource only tells
# you what to look for with the next tool.
#
# A monitor shows only this minute. If you log step time, samples per second and peak memory with the loss (TensorBoard,
# Weights & Biases, MLflow), you can find a step that became slow last week. In a cluster, every node exports its
# figures (NVIDIA's DCGM exporter, Prometheus), and a dashboard (on Kubernetes, for example) shows the one slow GPU.

# %% [markdown]
# ## Where you are

# %%
Progress("lab05_profiling")
