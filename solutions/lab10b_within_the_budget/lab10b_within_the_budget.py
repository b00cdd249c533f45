# %% [markdown]
# # Within the budget
#
# A training job works: its losses fall, and its GPU is reported as busy. But it takes far longer than necessary. You
# get its program, its bill and a stopwatch, and you may use everything that you have learned so far.
#
# After this lab you can
#
# * say how far from its lower bound a job's time is, and which resource sets that bound;
# * find where a training loop loses time, make the most useful fixes first, and keep the losses identical, bit for bit;
# * run the job on several GPUs so that its gradient sums are hidden behind its passes;
# * choose how many GPUs a budget should buy.
#
# **About 146 minutes (estimated)**.
#
# | exercise | `single` | `scaled` | `score` | `report` |
# |---|---|---|---|---|
# | section | 2 | 3 | 4 | 5 |
# | minutes | 41 | 34 | 44 | 27 |
#
# No GPU is needed: time is modelled, and it is the same on every computer. The losses are real: a small net with the
# same number of layers is trained on the data that your program really moves, so a program that leaves out a step
# cannot produce the right curve. *Write your prediction down* before you run the next cell. Lecture slides are quoted
# by deck: [001] course introduction, [004] deep learning, hopefully faster.
#
# A failing check shows the first case that is wrong; `case("single")` returns the inputs of that case, and
# `TrainingJob.from_dict` makes a job from them. `hint("single")` gives hints, one at a time.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.in_torch import in_torch
    from edl_labs.ui.requires_solution import requires_solution
    from edl_labs.ui.predictions import predict, reveal_prediction
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
step_count = 4

# %% given
import math

import torch

from edl_labs.plots import style
from edl_labs.units import seconds
from edl_labs.virtual.budget import (
    TrainingJob,
    best_lower_bound,
    lower_bound,
    run_training,
)

JOB = TrainingJob(
    steps=step_count,
    units=12,
    ranks=1,
    inputs=1_400_000,
    elements=(6_000_000,) * 5,
    outputs=(1_800_000,) * 5,
    forward_s=(110e-6,) * 5,
    backward_s=(220e-6,) * 5,
    kernel_s=30e-6,
    pass_s=120e-6,
    decode_s=1e-3,
    convert_s=3.7e-3,
    pinned_byte_per_s=12e9,
    pageable_byte_per_s=5e9,
    memory_byte_per_s=1e12,
    call_s=1e-6,
    alpha_s=10e-6,
    link_byte_per_s=200e9,
    memory_bytes=585_000_000,
    price_per_gpu_s=1.0,
    seed=10,
)

# %%
Progress("lab10b_within_the_budget")

# %% [markdown]
# ## 1. A job, its bill, and its lower bound
#
# A `TrainingJob` is a price list. In every step, `units` of data (a unit is a few hundred examples) go forward and
# backward through all layers, and their gradients are summed before **one** update of each layer. A `trainer` is one
# GPU, with these calls:
#
# | call | what it does |
# |---|---|
# | `load(step, first, count, dtype="fp32", pinned=False)` | the host decodes `count` units, beginning at `first` |
# | `to_device(data, non_blocking=False)` | copies on the current stream |
# | `forward(i, inputs, fused=False)` | runs kernels on the current stream; returns layer i's outputs |
# | `loss(step, outputs, x)` | adds to the loss of a step; returns the gradient of the outputs |
# | `backward(i, inputs, gradient, fused=False)` | *adds* to layer i's gradients; returns the gradient of its inputs |
# | `all_reduce(first, stop, async_op=False)` | sums the gradients of layers first to stop - 1 over the GPUs |
# | `update(first=0, stop=None, fused=False)` | updates layers, and clears their gradients |
# | `read_loss(step)`, `read_losses()` | reads one loss, or all; the host waits |
# | `free(*held)` | frees memory |
# | `Stream()`, `Event()`, `stream(s)`, `synchronize()` | as in `torch.cuda` |
#
# The files contain `"uint8"`; for fp32 the host converts what it has decoded. The host waits for every copy unless the
# copy is pinned *and* `non_blocking`. For layer 0, `backward` returns `None`. `all_reduce(..., async_op=True)` returns
# a work handle, which has `wait()`. Events have `record(s)` and `wait(s)`; without `s`, they use the current stream.
#
# `trainer.steps`, `trainer.layers`, `trainer.ranks` and `trainer.share` are numbers; the share is how many units of a
# step are on this GPU, and they are numbered from 0. `trainer.job` is the price list. This is the program as it was
# found:


# %% given
def naive(trainer):
    """A training job that works."""
    for step in range(trainer.steps):
        for unit in range(trainer.share):
            x = trainer.to_device(trainer.load(step, unit, 1))
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1]))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient)
                trainer.free(gradient, held.pop())
                gradient = before
            trainer.free(x)
            trainer.synchronize()
        if trainer.ranks > 1:
            for i in range(trainer.layers):
                trainer.all_reduce(i, i + 1)
        trainer.update()
        trainer.read_loss(step)


# %% [markdown]
# The *lower bound* of the job's time (its *speed of light*) is a time that no program can beat. Each resource (the
# GPU's compute, the host that loads, the copy engine, the links) has work that every program must do. Some other work
# must be done before a resource can start, and some only after it has finished. For each resource, the bound adds up
# these times; the largest total is the lower bound, which `lower_bound(job)` returns. **Predict:** the *efficiency*
# of a program is the lower bound divided by the program's time. What is it for the naive program, in percent?

# %%
predict("naive_efficiency", "The efficiency of the naive job is", unit="%")

# %%
with reveal_prediction("naive_efficiency") as truth:
    found = run_training(JOB, naive)
    print(f"modelled: {found}")
    print("modelled:", lower_bound(JOB))
    truth(found.efficiency)

# %%
figure, axes = style.subplots(figsize=(9, 2.6))
axes = found.rows().plot(axes, end_s=2.5 * found.makespan_s / JOB.steps / JOB.share)
_ = axes.set_title("The naive program (modelled)")
print("losses:", [round(loss, 6) for loss in found.losses])

# %% [markdown]
# The picture shows two and a half units: kernels, a copy, and long stretches where the GPU has nothing to do because
# the host is loading. The timeline shows where to look, but not what a fix gains. Fixes *interact*: the gain of a
# second fix may show only after the first has been made.

# %% [markdown]
# ## 2. One GPU
#
# **Predict:** apply one fix at a time, and change nothing else. Which of these fixes gains most?

# %%
predict(
    "first_mend",
    "The single fix that gains most is",
    choices=["uint8 data", "fused kernels", "pinned copies", "one fused update"],
)


# %% given
def passes(trainer, step, x, *, fused=True, after=None):
    """Forward and backward pass of the units in `x`; calls `after(i)` after layer i."""
    held = [x]
    for i in range(trainer.layers):
        held.append(trainer.forward(i, held[-1], fused=fused))
    gradient = trainer.loss(step, held[-1], x)
    for i in reversed(range(trainer.layers)):
        before = trainer.backward(i, held[i], gradient, fused=fused)
        trainer.free(gradient, held.pop())
        gradient = before
        if after is not None:
            after(i)
    trainer.free(x)


# %% given
def mended(
    trainer, *, dtype="fp32", pinned=False, fused=False, whole=False, waits=True
):
    """The naive program with some of its calls fixed."""
    for step in range(trainer.steps):
        for unit in range(trainer.share):
            data = trainer.load(step, unit, 1, dtype=dtype, pinned=pinned)
            x = trainer.to_device(data, non_blocking=True)
            passes(trainer, step, x, fused=fused)
            if waits:
                trainer.synchronize()
        trainer.update(fused=whole)
        if waits:
            trainer.read_loss(step)
    if not waits:
        trainer.read_losses()


# %%
MENDS = {
    "uint8 data": {"dtype": "uint8"},
    "fused kernels": {"fused": True},
    "pinned copies": {"pinned": True},
    "one fused update": {"whole": True},
}


def mended_run(*names):
    what = {name: value for one in names for name, value in MENDS[one].items()}
    return run_training(JOB, lambda trainer: mended(trainer, **what))


# %%
with reveal_prediction("first_mend") as truth:
    runs = {name: mended_run(name) for name in MENDS}
    for name, run in runs.items():
        time = f"{seconds(run.makespan_s)}, {run.efficiency:.0%} efficiency"
        print(f"modelled, {name}: {time}")
    together = mended_run(*MENDS)
    told = f"{seconds(together.makespan_s)}, {together.efficiency:.0%} efficiency"
    print(f"modelled, all four: {told}")
    truth(min(runs, key=lambda name: runs[name].makespan_s))

# %% [markdown]
# All four fixes together are far from enough: most of the remaining time is lost *between* calls. Three questions are
# left to you:
#
# * How many units should go through the net at once? `job.peak_bytes(count)` is the memory that a program needs for
#   micro-batches of `count` units that go through `passes`, which frees what it has used. Inputs that you copy ahead
#   need additional memory. Each kernel takes `job.kernel_s` before it does anything.
# * What must the host really wait for?
# * What can a copy overlap with?
#
# Write `train_on_one(trainer)`: the same job on one GPU, within `trainer.job.memory_bytes`, with an efficiency of 90
# % or more, with losses that agree to 1e-6. `passes` is already written; you write the code around it. `run_training`
# shows time, memory and losses, but only `check` tests that a pass waits for all data that it reads.


# %% solve="single"
def train_on_one(trainer):
    """The training job on one GPU."""
    ### BEGIN SOLUTION
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            passes(trainer, step, x)
        trainer.update(fused=True)
    trainer.read_losses()
    ### END SOLUTION


# %% check="single"
check("single")

# %%
with requires_solution("single"):
    alone = run_training(JOB, train_on_one)
    print(f"modelled: {alone}")
    print("the same losses:", alone.losses == found.losses)
    figure, axes = style.subplots(figsize=(9, 2.6))
    axes = alone.rows().plot(axes)

# %% [markdown]
# The losses are not *close*, they are *equal*: the small net rounds each product to a grid on which sums are exact, so
# that neither the order of a sum nor the size of a micro-batch changes a bit. On a real GPU both can change bits;
# lab10_capstone asks when two curves are the same.

# %% [markdown]
# **The same in torch.** `load(dtype="uint8", pinned=True)` is a loader with `pin_memory=True` that does not convert
# images. `to_device(data, non_blocking=True)` is `to("cuda", non_blocking=True)` in a separate stream. An event's wait
# is `wait_stream`, `fused=True` is an argument of the optimizer, and `read_losses()` is one `tolist()` at the end. The
# model has no counterpart of `record_stream`, which keeps the memory of `x` from being reused while a step reads it.


# %%
def step_in_torch(model, optimizer, x):
    """One step; the loss stays on the device."""
    loss = model(x.float()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def found_in_torch(model, optimizer, batches):
    """The losses of an epoch, as it is often found."""
    steps = (step_in_torch(model, optimizer, x.float().to("cuda")) for x in batches)
    return [loss.item() for loss in steps]


# %%
def mended_in_torch(model, optimizer, batches):
    """The losses of an epoch in which the host waits once and copies run ahead."""
    copies, main, losses = torch.cuda.Stream(), torch.cuda.current_stream(), []
    for batch in batches:
        with torch.cuda.stream(copies):
            x = batch.to("cuda", non_blocking=True)
        main.wait_stream(copies)
        x.record_stream(main)
        losses.append(step_in_torch(model, optimizer, x))
    return torch.stack(losses).tolist()


# %%
def single_in_torch():
    """20 batches, as found and mended."""
    layers = (torch.nn.Linear(1024, 1024) for _ in range(4))
    model = torch.nn.Sequential(*layers).cuda()
    slow, fused = (torch.optim.Adam(model.parameters(), fused=f) for f in (False, True))
    whole = [torch.ones(512, 1024, dtype=torch.uint8) for _ in range(20)]
    pinned = [one.pin_memory() for one in whole]
    return {
        "as found": lambda: found_in_torch(model, slow, whole),
        "mended": lambda: mended_in_torch(model, fused, pinned),
    }


# %%
in_torch(
    single_in_torch, told="modelled, section 1's job: as found 529 ms, mended 90.6 ms"
)

# %% [markdown]
# ## 3. Several GPUs
#
# Now each GPU processes its share of a step, and the gradients of all GPUs must be summed before an update. A sum of n
# bytes in a ring of P GPUs takes 2 (P - 1) (α + n / (P β)) seconds. **Predict:** at the lower bounds, by what factor
# do four GPUs, with three units each, make the job faster?

# %%
predict(
    "four_gpus",
    "At the lower bounds, four GPUs are faster by a factor of",
    unit="times",
)

# %%
with reveal_prediction("four_gpus") as truth:
    four = JOB.on(4)
    sum_s, passes_s = four.all_reduce_s(sum(four.elements)), 3 * 5 * 330e-6
    print(f"modelled, a sum of all gradients: {seconds(sum_s)}")
    print(f"modelled, a GPU's passes in a step: {seconds(passes_s)}")
    print("modelled, one GPU:", lower_bound(JOB))
    print("modelled, four:   ", lower_bound(four))
    print("the update and the fixed part of each kernel are not divided by four")
    truth(lower_bound(JOB).seconds / lower_bound(four).seconds)

# %% [markdown]
# Your program will be slower than the lower bound if it waits for one sum before it issues the next, or if it starts
# its sums only after all passes.
#
# Gradients are ready from the last layer to the first. A sum overlaps with work on the streams, but sums run one after
# the other, and each adds 2 (P - 1) α. Every micro-batch *adds* to the gradients, so they are complete only after the
# last one; gradients summed earlier would be summed a second time. `passes(…, after=…)` calls a function of yours with
# each layer's number as soon as that layer's backward pass has been issued, as a hook of PyTorch does.
#
# Write `train_on_many(trainer)`, which runs on each GPU, within its memory and with an efficiency of 87 % or more.


# %% solve="scaled"
def train_on_many(trainer):
    """The training job on each of several GPUs."""
    ### BEGIN SOLUTION
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies, works = trainer.Stream(), []

    def sum_layer(i):
        works.append(trainer.all_reduce(i, i + 1, async_op=True))

    for step in range(trainer.steps):
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            last = first + count == trainer.share
            passes(trainer, step, x, after=sum_layer if last else None)
        while works:
            works.pop(0).wait()
        trainer.update(fused=True)
    trainer.read_losses()
    ### END SOLUTION


# %% check="scaled"
check("scaled")

# %%
with requires_solution("scaled"):
    many = run_training(four, train_on_many)
    print(f"modelled: {many}")
    print("the same losses:", many.losses == found.losses)
    figure, axes = style.subplots(figsize=(9, 3))
    axes = many.rows().plot(axes, end_s=1.5 * many.makespan_s / four.steps)

# %% [markdown]
# **The same in torch.** `passes(..., after=sum_layer)` is a hook of `DistributedDataParallel`, which calls
# `dist.all_reduce(bucket, async_op=True)` for each bucket that is ready, while the backward pass continues.
# `work.wait()` comes at the end of `backward()`. Run all micro-batches except the last one in `no_sync()`: it is the
# forward pass that decides whether gradients are sent.


# %%
def scaled_in_torch():
    """Four micro-batches, summed after each or once."""
    from contextlib import nullcontext

    from torch.nn.parallel import DistributedDataParallel

    layers = [torch.nn.Linear(512, 512, bias=False) for _ in range(16)]
    ddp = DistributedDataParallel(torch.nn.Sequential(*layers))

    def step(sends):
        for micro in range(4):
            with nullcontext() if micro in sends else ddp.no_sync():
                ddp(torch.ones(4, 512)).sum().backward()

    return {"after each": lambda: step(range(4)), "once": lambda: step((3,))}


# %%
recorded = "recorded on 2 busy cores: after each 302 ms, once 118 ms"
in_torch(scaled_in_torch, ranks=2, told=recorded)

# %% [markdown]
# ## 4. Within the budget
#
# Deck [001] asks for experiments that do "not run out of money". More GPUs finish sooner, but they are idle for a
# larger share of the time. GPUs with fast links between them cost more per GPU. An offer is an object with
# `offer.ranks` and `offer.price_per_gpu_s`; a run costs its seconds times its GPUs times that price. **Predict:**
# take the job from section 2, run it in the shortest possible time (the lower bound), and pay the same price per GPU.
# How many times as much does the run cost on four GPUs as on one?

# %%
predict("dearer", "The price on four GPUs, compared with one GPU, is", unit="times")

# %%
with reveal_prediction("dearer") as truth:
    for ranks in (1, 2, 3, 4):
        bound = lower_bound(JOB.on(ranks))
        told = f"{seconds(bound.seconds)}, {ranks * bound.seconds:.4f} to pay"
        print(f"modelled, {ranks} GPU(s): {told}")
    truth(4 * lower_bound(four).seconds / lower_bound(JOB).seconds)

# %% [markdown]
# Write
#
# * `choose_gpus(job, offers, budget)` → the `ranks` of the offer to take. `job.on(ranks)` is the same job on `ranks`
#   GPUs. A run that costs more than `budget` is not paid for and scores nothing. You are free to choose the method:
#   compute with `lower_bound`, or try programs with `run_training`;
# * `train_within(trainer)`, which runs on each GPU of that offer. Start from your programs above. These jobs are short,
#   and the GPUs of the best offer have enough memory for all the units of a step. How many units should be loaded
#   first, while no GPU computes?
#
# The score is the geometric mean of the efficiency, *the lower bound divided by your time*, over jobs that you do not
# know. Here, the lower bound is the shortest time that any of the offers could reach within the budget. (An offer
# does not count if only a program with an efficiency above 98 % would stay within the budget.) A score of 88 % or
# more earns all points, 78 % three quarters, 55 % half, and 30 % a quarter, with no steps between. A run that is
# faster than the lower bound is refused, and so is a program that leaves work out. A single run that is not paid for
# costs all points.


# %% solve="score"
def choose_gpus(job, offers, budget):
    """The ranks of the offer to take."""
    ### BEGIN SOLUTION
    paid = {}
    for offer in offers:
        run_s = lower_bound(job.on(offer.ranks)).seconds / 0.85
        if run_s * offer.ranks * offer.price_per_gpu_s <= budget:
            paid[run_s] = offer.ranks
    return paid[min(paid)]
    ### END SOLUTION


def train_within(trainer):
    """The training job on each GPU of the offer."""
    ### BEGIN SOLUTION
    copies, works = trainer.Stream(), []

    def sum_layer(i):
        works.append(trainer.all_reduce(i, i + 1, async_op=True))

    unit_s, count = sum(trainer.job.forward_s) + sum(trainer.job.backward_s), 1
    for step in range(trainer.steps):
        first = 0
        while first < trainer.share:
            rest = trainer.share - first
            # Parts of about one size, so that no small one is left.
            count = rest // -(-rest // count)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            first += count
            last = first == trainer.share
            passes(trainer, step, x, after=sum_layer if last else None)
            # As many as can be loaded while these are computed.
            count = math.ceil(count * unit_s / trainer.job.decode_s)
        while works:
            works.pop(0).wait()
        trainer.update(fused=True)
    trainer.read_losses()
    ### END SOLUTION


# %% check="score"
check("score")

# %%
with requires_solution("score"):
    product = 1.0
    for number in (1, 2, 3):
        given = case("score", number)
        job, offers, budget = given["job"], given["offers"], given["budget"]
        ranks = choose_gpus(job, offers, budget)
        price = next(one.price_per_gpu_s for one in offers if one.ranks == ranks)
        run = run_training(job.on(ranks), train_within)
        share = best_lower_bound(job, offers, budget=budget / 1.02) / run.makespan_s
        paid = ranks * price * run.makespan_s
        counts = paid <= budget and not run.faults
        told = f"{share:.1%}; {paid:.4f} of {budget:.4f}"
        print(f"modelled, {number}: {ranks} GPU(s), {told}")
        product *= share if counts else 0  # not paid, or not the training
    print(f"score: {product ** (1 / 3):.1%}; the thresholds: 88, 78, 55 and 30 %")

# %% [markdown]
# Try a small first micro-batch and larger ones after it: no GPU computes while the first one is loaded. This applies to
# each step, not only to the first. But in later steps the host loads units while the last units of the previous step
# are still being computed, so more units can be ready in time. A small last micro-batch pays the fixed cost of its
# kernels again and leaves less computation to hide the sums. When is it still worth it? The time that is still lost is
# the fixed cost of the kernels, paid once for each micro-batch, and the sums that end after the last pass.

# %% [markdown]
# ## 5. Report
#
# What did each fix and each GPU gain? The next two cells apply five fixes in one order and in the reverse order, and
# run your program from section 3 on one GPU and on more.

# %%
MENDS["no waits"] = {"waits": False}
for order in (list(MENDS), list(MENDS)[::-1]):
    before, made = found.makespan_s, []
    print("modelled, with the fixes in this order:")
    for name in order:
        made.append(name)
        after = mended_run(*made).makespan_s
        print(
            f"  {name:16}  gains {seconds(before - after):>8}, {seconds(after)} remain"
        )
        before = after

# %%
with requires_solution("scaled"):
    for ranks in (1, 2, 3, 4):
        run = run_training(JOB.on(ranks), train_on_many)
        bound = lower_bound(JOB.on(ranks))
        time = f"{seconds(run.makespan_s)}, {run.efficiency:.0%} efficiency"
        told = f"{run.money:.3f} to pay; limit: {bound.resource}"
        print(f"modelled, {ranks} GPU(s): {time}, {told}")

# %% [markdown] explain="report"
# You return the job to the people who pay for it. In 80 to 150 words, explain **(a)** which three fixes on one GPU
# gained most, with the figures above, and why their order changes what each of them seems to gain; **(b)** what the
# second, third and fourth GPU gained, in seconds and in money, and which resource limits the job; **(c)** one thing
# that a real cluster would do differently from this model, and what you would measure first.

# %% [markdown]
# ## Where you are

# %%
Progress("lab10b_within_the_budget")
