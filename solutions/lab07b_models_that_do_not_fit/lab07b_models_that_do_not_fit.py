# %% [markdown]
# # Models that do not fit
#
# A model of 7.5 billion parameters needs 120 GB before the first activation. That is more than a GPU with 80 GB has,
# and nearly all that the largest GPU has. So weights, blocks or layers are spread over several GPUs. Each method has
# its own cost: it sends different bytes, over different links, at different times. Here every rank's program is
# recorded and replayed on a laptop, so you see each byte, each wait and each peak exactly.
#
# After this lab you can
#
# * shard a training step so that a layer's weights arrive while the previous layer runs, and are freed in time;
# * split attention and MLP over ranks, with one all-reduce forward and one backward, and get correct gradients;
# * fill a pipeline, and say what the 1F1B schedule changes and what it does not;
# * choose between these methods for a model and a cluster, with numbers.
#
# This lab builds on lab07's collectives: an *all-gather* gives every rank all parts, a *reduce-scatter* sums and leaves
# one part on each rank, and an *all-reduce* is a reduce-scatter followed by an all-gather.
#
# **About 210 minutes (estimated)**, in two sittings: the first ends with section 2. The practice sections carry no
# points; they take another 80 minutes (estimated) and can be done in any order.
#
# | exercise | `sharded_step` | `split_a_block` | `pipeline` | `explain` |
# |---|---|---|---|---|
# | section | 1 | 2 | 3 | 4 |
# | minutes | 50 | 65 | 55 | 40 |
#
# | practice | `zero` | `layout` |
# |---|---|---|
# | minutes | 29 | 51 |
#
# You need neither a GPU nor a second process: the GPUs are modelled, and results of modelled GPUs are labelled as such.
# *Write your prediction down* before you run the next cell. If there is a box, enter a number, with or without its
# unit, and press Enter. The result then appears next to it. Lecture slides are quoted by deck: [002] software
# perspective, [004] deep learning, hopefully faster. `hint("sharded_step")` gives the hints of an exercise, one at a
# time.
#
# A check that fails shows the first wrong case and what your code returned. `case("sharded_step")` gives that case's
# inputs as Python values, so that you can try your code on them.

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
layer_count = 6

# %% given
from edl_labs.plots import style
from edl_labs.units import byte_count, seconds
from edl_labs.virtual.cluster import ClusterMachine, VirtualCluster

# %%
Progress("lab07b_models_that_do_not_fit")

# %% [markdown]
# ## 1. Sharded: gather, use, free
#
# In data parallel training every rank holds the same 16 bytes per parameter: 2 of bf16 weights, 2 of gradients, and 12
# in fp32, for the master copy of the weights and Adam's two averages. In *sharded* training (deck [002]'s ZeRO; in
# PyTorch, FSDP), each of `P` ranks keeps a `P`-th of each and gathers a layer's weights when it is that layer's turn.
# 7.5 billion parameters take 120 GB on every GPU; sharded over 64 GPUs, they take 1.9 GB.
#
# This has a cost: weights are gathered twice in a step, forward and backward, instead of never. Gradients need a
# reduce-scatter, which is the first half of an all-reduce. **Predict:** a sharded step sends how many times the bytes
# of the all-reduce in plain data parallel training?

# %% given
from edl_labs.numerics import bytes_per_parameter
from edl_labs.roofline.network import zero_calls
from edl_labs.virtual.cluster import ShardedLayers

# %%
predict(
    "times_the_bytes",
    "Compared with the all-reduce, a sharded step sends",
    unit="times",
)

# %%
with reveal_prediction("times_the_bytes") as truth:
    sent = {}
    for stage in (0, 3):
        calls = zero_calls(stage, 7.5e9, ranks=64)
        sent[stage] = sum(call.sent_bytes(64) for call in calls)
        kept = bytes_per_parameter("half+master adam", zero_stage=stage, gpus=64)
        held = 7.5e9 * kept.resident
        told = f"{byte_count(held)} held, {byte_count(sent[stage])} sent"
        print(f"modelled, stage {stage}: {told}")
    truth(sent[3] / sent[0])

# %% [markdown]
# Compute should not wait for these bytes. Write `sharded_step(layers)`, one rank's step. `layers` is a `ShardedLayers`
# with `layers.count` layers, numbered from 0, and these calls:
#
# | call | does |
# |---|---|
# | `layers.all_gather(i)` | allocates memory, starts to gather layer i's weights, and returns a handle |
# | `layers.forward(i)`, `layers.backward(i)` | run a pass with the gathered weights; backward gives gradients |
# | `layers.free(i)` | frees the gathered weights |
# | `layers.reduce_scatter(i)` | starts to sum the gradients of layer i over the ranks, and returns a handle |
# | `layers.update(i)` | updates the shard from the sum, and frees the layer's whole gradients |
#
# A handle's `wait()` makes everything issued after it wait for that collective; nothing else waits. A second `wait()`
# does no harm. A collective runs *during* later passes: it starts when everything issued before it is done, and
# collectives run one after the other. Memory is counted in the order of your calls. There is room for two layers'
# weights and two layers' gradients at once, but not for three of either. Your step may take at most 5 % more time than
# the best one.


# %% solve="sharded_step"
def sharded_step(layers):
    """A training step of one rank."""
    ### BEGIN SOLUTION
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
        gathering.wait()
        if i < last:
            gathering = layers.all_gather(i + 1)
        layers.forward(i)
        if i < last:
            layers.free(i)
    reducing = None
    for i in reversed(range(layers.count)):
        if i < last:
            gathering.wait()
        if i:
            gathering = layers.all_gather(i - 1)
        layers.backward(i)
        layers.free(i)
        if reducing:
            reducing.wait()
            layers.update(i + 1)
        reducing = layers.reduce_scatter(i)
    reducing.wait()
    layers.update(0)
    ### END SOLUTION


# %% check="sharded_step"
check("sharded_step")

# %%
LAYER = {"elements": 50_000_000, "forward_s": 2e-3, "backward_s": 4e-3}
with requires_solution("sharded_step"):
    sizes = {name: [each] * layer_count for name, each in LAYER.items()}
    node = VirtualCluster(ClusterMachine.of("8xH100").replace(ranks=4))
    shown = node.run(lambda dist: sharded_step(ShardedLayers(dist, **sizes)))
    print(f"modelled: {shown}")
    print(f"modelled, the passes alone: {seconds(max(shown.compute_s))}")
    figure, axes = style.subplots(figsize=(9, 4))
    axes = shown.timeline.plot(axes)

# %% [markdown]
# All gathers except the first, and all sums except the last, hide behind passes. The last layer is needed again at
# once, so its weights may stay, which saves a gather. `fully_shard` issues all this for you (but it frees the last
# layer too, unless you set `reshard_after_forward` to False). However, it cannot hide everything: if a gather takes
# longer than the pass that hides it, the rank waits, however early the gather begins. Both times grow with the layer,
# but only that of the pass grows with the tokens on each GPU.

# %% [markdown]
# **The same in torch.** `fully_shard(layer)` hooks your calls into the passes of a layer: `layers.all_gather(i)` is
# `dist.all_gather_into_tensor(whole, shard, async_op=True)`, `layers.free(i)` is `reshard_after_forward`,
# `layers.reduce_scatter(i)` is `dist.reduce_scatter_tensor(shard, whole, async_op=True)`, and `layers.update(i)` is an
# optimizer that works only on shards. The profiler counts the calls in a step of four layers:


# %%
def sharded_in_torch():
    """The collectives of a forward and a backward pass, sharded over two processes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
    for part in (*model, model):
        fully_shard(part, mesh=init_device_mesh("cpu", (2,)))
    with torch.profiler.profile() as prof:
        model(torch.ones(8, 256)).sum().backward()
    calls = [event.name for event in prof.events()]
    all_gather, reduce_scatter = "c10d::_allgather_base_", "c10d::_reduce_scatter_base_"
    gathers, scatters = calls.count(all_gather), calls.count(reduce_scatter)
    return {"all-gathers": gathers, "reduce-scatters": scatters}


# %%
recorded = "recorded on 2 cores: all-gathers 8, reduce-scatters 4"
in_torch(sharded_in_torch, ranks=2, told=recorded)

# %% [markdown]
# ## 2. One block on two GPUs
#
# If a single layer is too large, or must be faster, its matrices are cut (*tensor parallelism*). In `gelu(x A) B` the
# nonlinearity needs complete sums. So `A` is cut by **columns**, each rank applies `gelu` to its own channels, and `B`
# is cut by **rows**, at the same places. Every rank then has a part of every sum in the output, and one all-reduce adds
# up the parts. In attention, each rank has some of the heads, just as it has some of the channels in an MLP.
#
# **Predict:** a transformer layer (an attention block, then an MLP block) of width 4096 processes 2048 tokens in bf16,
# on the 8 GPUs of a single node. How many bytes does each all-reduce add up? And how many all-reduces does the whole
# layer need, forward and backward together?

# %% given
from edl_labs.roofline.network import tensor_calls

# %%
predict("summed", "Each all-reduce adds up", unit="MB")
predict("sums", "Forward and backward, the layer needs", unit="all-reduces")


# %%
def sum_of_a_block(dist):
    """One all-reduce of a block's output."""
    dist.all_reduce(dist.tensor(2048 * 4096, dtype="bf16"))


# %%
with reveal_prediction("summed", "sums") as truth:
    calls = tensor_calls(2048, hidden=4096, blocks=1, ranks=8)[0]
    for nodes in (1, 2):
        machine = ClusterMachine.of("8xH100", nodes=nodes)
        sums_s = calls.times * VirtualCluster(machine).run(sum_of_a_block).makespan_s
        products_s = 6 * 12 * 4096**2 * 2048 / (8 * nodes) / 400e12
        print(f"modelled, {8 * nodes} GPUs in {nodes} node(s):", end=" ")
        print(f"{calls.times} sums take {seconds(sums_s)},", end=" ")
        print(f"the products at 400 TFLOP/s {seconds(products_s)}")
    truth(summed=calls.message_bytes, sums=calls.times)

# %% given
from math import sqrt

import torch

from torch.nn.functional import gelu


def whole_block(block, x):
    """What one GPU computes: attention over tokens (rows of x), or an MLP."""
    if block["kind"] == "mlp":
        return (
            gelu(x @ block["up"] + block["up_bias"]) @ block["down"]
            + block["down_bias"]
        )
    return heads_of(block, x) @ block["out"] + block["out_bias"]


def heads_of(block, x):
    """The outputs of all heads of a block (or of a part of it), side by side."""
    query, key, value = (
        (x @ block[name]).unflatten(1, (block["heads"], -1)).transpose(0, 1)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(1, 2) / sqrt(query.shape[2])
    return (scores.softmax(2) @ value).transpose(0, 1).flatten(1)


# %% [markdown]
# The cell above computes a whole block. A block is *one* of two kinds: its `kind` is `"mlp"`, with `up`, `up_bias`,
# `down` and `down_bias`, or `"attention"`, with `heads`, `query`, `key`, `value`, `out` and `out_bias`. Use `heads_of`
# for a rank's own heads. Write
#
# * `shards(block, rank, ranks)` → a dict with the block's names and a rank's part of each: neighbouring columns (or
#   heads), in the order of the ranks. The number of columns (or heads) need not be a multiple of `ranks`, but is never
#   smaller; parts differ by at most one column (or head). A head is never cut, and what belongs to the block's output
#   is whole on every rank. Do not change `block`: the next rank's part is cut from it;
# * `forward(shard, x, comm)` → the block's whole output, on every rank. `comm.all_reduce(tensor)` gives the sum over
#   the ranks as a new tensor. *Autograd cannot follow this sum*, so write the two `torch.autograd.Function`s that
#   Megatron calls f (where x enters) and g (where the parts come together). Their backward passes make the gradients
#   right, with **one** all-reduce forward and **one** backward. You call a `Function` with `apply`. `backward` finds in
#   `ctx` what `forward` stored there. It returns one gradient for each input of `forward`, and `None` for inputs that
#   are not tensors:
#
#       class Scaled(torch.autograd.Function):
#           @staticmethod
#           def forward(ctx, x, factor):
#               ctx.factor = factor
#               return factor * x
#
#           @staticmethod
#           def backward(ctx, grad):
#               return ctx.factor * grad, None


# %% solve="split_a_block"
def shards(block, rank, ranks):
    """A rank's part of every weight."""

    ### BEGIN SOLUTION
    def cut(count):
        return slice(rank * count // ranks, (rank + 1) * count // ranks)

    if block["kind"] == "mlp":
        mine = cut(block["up"].shape[1])
        return block | {
            "up": block["up"][:, mine],
            "up_bias": block["up_bias"][mine],
            "down": block["down"][mine],
        }
    mine, size = cut(block["heads"]), block["query"].shape[1] // block["heads"]
    channels = slice(mine.start * size, mine.stop * size)
    return block | {
        "heads": mine.stop - mine.start,
        **{name: block[name][:, channels] for name in ("query", "key", "value")},
        "out": block["out"][channels],
    }
    ### END SOLUTION


class ToRanks(torch.autograd.Function):
    """Where x enters the ranks' parts."""

    @staticmethod
    def forward(ctx, x, comm):
        ### BEGIN SOLUTION
        ctx.comm = comm
        return x.view_as(x)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        return ctx.comm.all_reduce(gradient), None
        ### END SOLUTION


class FromRanks(torch.autograd.Function):
    """Where the parts of the output come together."""

    @staticmethod
    def forward(ctx, part, comm):
        ### BEGIN SOLUTION
        return comm.all_reduce(part)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        return gradient, None
        ### END SOLUTION


def forward(shard, x, comm):
    """The output of the whole block, from a rank's part of it."""
    ### BEGIN SOLUTION
    x = ToRanks.apply(x, comm)
    if shard["kind"] == "mlp":
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
        return FromRanks.apply(part, comm) + shard["down_bias"]
    part = heads_of(shard, x) @ shard["out"]
    return FromRanks.apply(part, comm) + shard["out_bias"]
    ### END SOLUTION


# %% check="split_a_block"
check("split_a_block")

# %% [markdown]
# A layer has four all-reduces. The two forward ones are not hidden: what follows needs the whole sum, unless product
# and sum are cut into pieces that overlap (*asynchronous* tensor parallelism). (Those of the backward pass can run at
# the same time as the products for the weights' gradients.) So blocks are split within a node, where links are fast.
# Between nodes, micro-batches are sent instead.

# %% [markdown]
# ## 3. A pipeline, and what 1F1B is for
#
# Deck [002] puts layers 0 to 2 on one GPU and layers 3 to 5 on the next. A batch that goes through as a whole keeps
# only one GPU busy at a time. Cut into `m` micro-batches, it keeps all stages busy, except while the pipeline fills and
# drains: that idle time is the **bubble**. GPipe runs all forward passes, then all backward passes. **1F1B** runs a
# backward pass as soon as its gradient has arrived: after a few forward passes to warm up, it alternates between one
# forward and one backward pass.
#
# **Predict:** 4 stages run 16 micro-batches on the modelled cluster. For what share of the step is a stage idle with
# GPipe, and with 1F1B? And how many micro-batches does the first stage hold at once with 1F1B?

# %% given
from edl_labs.virtual.cluster import PipelineStage

# %%
predict("gpipe_bubble", "With GPipe, a stage is idle for", unit="%")
predict("1f1b_bubble", "With 1F1B, a stage is idle for", unit="%")
predict("in_flight", "With 1F1B, the first stage holds", unit="micro-batches")

# %% [markdown]
# With `p` stages, a step of GPipe lasts `m + p - 1` forward passes and as many backward passes, and each stage runs `m`
# of each.
#
# Write three functions. `order(schedule, stage, stages, micro)` → what a stage does, in order: a list of `("forward",
# i)` and `("backward", i)`, with each micro-batch `i` once forward and once backward. `schedule` is `"gpipe"` or
# `"1f1b"`. GPipe may run its backward passes in any order that all stages share; in 1F1B the oldest micro-batch goes
# first. In 1F1B no stage holds more micro-batches than it needs to stay busy.
#
# `run_stage(stage, schedule)` runs that list on one rank. A `PipelineStage` has the numbers `stage` (which one it is),
# `stages` and `micro`, and the calls below. The first stage receives no input, and the last one no gradient.
#
# | call | does |
# |---|---|
# | `stage.forward(i)`, `stage.backward(i)` | run a pass; between the two, `i` is held in memory |
# | `stage.recv_forward(i)`, `stage.recv_backward(i)` | wait for the input, for the gradient |
# | `stage.send_forward(i)`, `stage.send_backward(i)` | send, and return once the message *has been received* |
# | `stage.isend_forward(i)`, `stage.isend_backward(i)` | start to send, and return at once; no wait is needed |
#
# `idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks)` → the seconds that each stage is idle in a
# step, as one number (it is the same for all stages); messages take no time here. A third `schedule`, `"interleaved"`,
# gives each stage `chunks` separate pieces of the layers. Each piece takes one `chunks`-th of the time, so the first
# gradient comes back that much sooner. In the other schedules `chunks` is 1. (You do not need every argument.)


# %% solve="pipeline"
def order(schedule, stage, stages, micro):
    """What a stage does, in its order: ("forward", i) and ("backward", i)."""
    ### BEGIN SOLUTION
    warm_up = micro if schedule == "gpipe" else min(micro, stages - 1 - stage)
    passes = [("forward", i) for i in range(warm_up)]
    for i in range(micro - warm_up):
        passes += [("forward", warm_up + i), ("backward", i)]
    return passes + [("backward", i) for i in range(micro - warm_up, micro)]
    ### END SOLUTION


def run_stage(stage, schedule):
    """Run a step on one rank."""
    ### BEGIN SOLUTION
    is_first, is_last = stage.stage == 0, stage.stage == stage.stages - 1
    for kind, i in order(schedule, stage.stage, stage.stages, stage.micro):
        if kind == "forward":
            if not is_first:
                stage.recv_forward(i)
            stage.forward(i)
            if not is_last:
                stage.isend_forward(i)
        else:
            if not is_last:
                stage.recv_backward(i)
            stage.backward(i)
            if not is_first:
                stage.isend_backward(i)
    ### END SOLUTION


def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """The seconds that each stage is idle in a step."""
    ### BEGIN SOLUTION
    return (stages - 1) * (forward_s + backward_s) / chunks
    ### END SOLUTION


# %% check="pipeline"
check("pipeline")


# %%
def step_of_pipeline(schedule, *, kept):
    """A step of 16 micro-batches on four stages, modelled."""
    stages = VirtualCluster.of("8xH100").machine.replace(ranks=4)
    sizes = {"micro": 16, "elements": 1_000_000, "kept": kept}

    def of_one_rank(dist):
        stage = PipelineStage(dist, **sizes, forward_s=4e-3, backward_s=8e-3)
        run_stage(stage, schedule)

    return VirtualCluster(stages).run(of_one_rank)


# %%
passes, kept = {}, 25_000_000
asked = ("gpipe_bubble", "1f1b_bubble", "in_flight")
with requires_solution("pipeline"), reveal_prediction(*asked) as truth:
    for schedule in ("gpipe", "1f1b"):
        done = passes[schedule] = step_of_pipeline(schedule, kept=kept)
        idle = 1 - max(done.compute_s) / done.makespan_s
        held = byte_count(done.peak_bytes[0])
        print(f"modelled, {schedule}: {seconds(done.makespan_s)},", end=" ")
        print(f"idle {idle:.1%}, {held} on the first stage")
        truth(**{f"{schedule}_bubble": idle})
    print("1F1B alone does not shrink the bubble: it only holds less memory")
    truth(in_flight=round(passes["1f1b"].peak_bytes[0] / (4 * kept)))
    figure, rows = style.subplots(2, 1, figsize=(9, 5))
    for axes, (schedule, done) in zip(rows, passes.items(), strict=True):
        done.timeline.plot(axes).set_title(f"{schedule} (modelled)")

# %% [markdown]
# With 4 micro-batches the bubble would be 3/7, or 42.9 %. *More micro-batches* or *interleaved* layers shrink it (and
# so do newer schedules, which compute the weights' gradients during the bubble). So 1F1B helps indirectly: in the
# memory that GPipe needs for 16 micro-batches, it can run more of them.

# %% [markdown]
# ## 4. Which method, and why?

# %% [markdown] explain="explain"
# **Explain (read by your instructor).** A transformer of 30 billion parameters (48 layers of width 7168) is to be
# trained in bf16 with Adam on four nodes of eight GPUs with 80 GB each. A GPU reaches 400 TFLOP/s; links carry 450 GB/s
# within a node, and 50 GB/s per GPU between nodes. Count 6 FLOP per parameter and token, and use rings over all ranks,
# in which a gather or a reduce-scatter of n bytes sends nearly n through each GPU's link. Leave out activations. (a)
# How many bytes do weights, gradients and Adam need, and which ways of spreading them make them fit? (b) Choose one way
# for a step of one million tokens, and one for 64 000 tokens. Give numbers for what is computed and what is sent: which
# communication is hidden, and which is not? (c) A colleague proposes four pipeline stages with eight micro-batches, "in
# 1F1B, which shrinks the bubble". What is right about that, and what would you do instead?

# %% [markdown]
# ## Practice: what each stage of ZeRO holds and sends
#
# Stage 0 is plain data parallel training. Each further stage shards one more part: stage 1 the optimizer's state, stage
# 2 also gradients, stage 3 also weights. **Predict:** with 2 bytes for a weight, 2 for a gradient and 12 for the master
# copy and Adam, how many of these 16 bytes per parameter does each of 8 GPUs hold in stage 2? And which is the first
# stage that sends more than stage 0, with one micro-batch?

# %%
predict("stage_2_holds", "Per parameter, a GPU in stage 2 holds", unit="B")
predict(
    "sends_more", "The first to send more is", choices=("stage 1", "stage 2", "stage 3")
)

# %% [markdown]
# Write, for a `stage` of 0 to 3 on `ranks` GPUs,
#
# * `held_bytes(stage, ranks, recipe)`: the bytes of state on a GPU between two passes, gradients included;
# * `sent_bytes(stage, ranks, recipe)`: the bytes that a GPU sends in a step.
#
# | key of a recipe | meaning |
# |---|---|
# | `layers` | a list with the number of parameters of each layer |
# | `frozen` | how many of the first layers are not trained: they have only weights, and no backward pass |
# | `weights`, `gradients`, `optimizer` | bytes per parameter |
# | `micro_batches` | how many there are in a step: each goes forward and backward; then there is one update |
#
# Each layer is cut separately: on every GPU a *shard* has the layer's number of parameters divided by `ranks`, rounded
# up. What is not sharded is whole, and needs no padding. Collectives run in rings, layer by layer: an all_gather or a
# reduce_scatter sends `ranks - 1` shards, an all_reduce twice as many. Whole gradients are added up locally over the
# micro-batches; sharded gradients must be summed over the ranks after each micro-batch. Sharded weights are gathered
# for a pass and freed after it, and each GPU updates the parameters whose optimizer state it holds. Nothing is sent
# that is not needed.


# %% solve="zero"
def held_bytes(stage, ranks, recipe):
    """The bytes of state on a GPU."""
    ### BEGIN SOLUTION
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )
    ### END SOLUTION


def sent_bytes(stage, ranks, recipe):
    """The bytes that a GPU sends in a step."""
    ### BEGIN SOLUTION
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
    return (ranks - 1) * sent_shards
    ### END SOLUTION


# %% check="zero"
check("zero")

# %% [markdown]
# Here is the model of section 1 again, 7.5 billion parameters on 64 GPUs, computed by your own functions:

# %%
with (
    requires_solution("zero"),
    reveal_prediction("stage_2_holds", "sends_more") as truth,
):
    recipe = {"layers": [10**6], "frozen": 0, "micro_batches": 1}
    recipe |= {"weights": 2, "gradients": 2, "optimizer": 12}
    goes = [sent_bytes(stage, 8, recipe) for stage in range(4)]
    first = next(stage for stage in range(4) if goes[stage] > goes[0])
    truth(stage_2_holds=held_bytes(2, 8, recipe) / 10**6, sends_more=f"stage {first}")
    recipe["layers"] = [75 * 10**6] * 100
    for stage in range(4):
        held = byte_count(held_bytes(stage, 64, recipe))
        goes = byte_count(sent_bytes(stage, 64, recipe))
        print(f"modelled, stage {stage}: {held} held, {goes} sent")

# %% [markdown]
# An all_reduce is a reduce_scatter followed by an all_gather; the stages only change what is gathered. This is true for
# one micro-batch: with several, stage 2 sends gradients for each.


# %% [markdown]
# ## Practice: place a training job
#
# Which of these methods suits a given model on a given cluster? The rules below give all costs. Typing them in is most
# of the work, but the choice at the end is the point. A *layout* gives the number of replicas (`dp`), the number of
# GPUs that share a block (`tp`) and the number of stages (`pp`); their product is the number of GPUs. A micro-batch has
# `micro` sequences, and a step of each replica has `micro_batches` of them; `zero` is a stage of ZeRO, `recompute` a
# bool. The cost of a layout:
#
# * **Parameters** of a GPU: n = `blocks / pp * block_parameters / tp`.
# * **State**: 16 B for each of the n parameters. Stage 1 shards 12 of these bytes over `dp`, stage 3 all 16.
# * **Activations**: t = `micro * sequence` tokens keep 34·t·`hidden` / `tp` B per block. With `recompute` they keep
#   2·t·`hidden` B per block, plus 34·t·`hidden` / `tp` once, for the block that runs. The first stage keeps the
#   activations of all its blocks for `pp` micro-batches, or for all micro-batches if there are fewer.
# * **Computing** of a micro-batch: 6·n·t FLOP (with `recompute`, 8·n·t) at `flop_per_s`, or at I · `memory_byte_per_s`
#   if that is less. I is the FLOP/B of a GPU's own product: t × `hidden` by `hidden` × w, in 2-byte types, with w = 4 ·
#   `hidden` / `tp`; both matrices are read once, and the result is written once.
# * **Split blocks**: 4 all-reduces of 2·t·`hidden` B per block and micro-batch, or 6 with `recompute`.
# * **Messages between stages**, if there are several: 2 messages of 2·t·`hidden` B per micro-batch.
# * **A step**: the time of one micro-batch for computing, split blocks and messages between stages is a *slot*; a step
#   has `micro_batches + pp - 1` slots.
# * **Data sums**: in stages 0 and 1 an all-reduce of 2·n B per step; in stage 3 two gathers and one reduce-scatter of
#   2·n B for each micro-batch. They run during the computation of one micro-batch (in stage 3: of all micro-batches,
#   without the bubble). If they take longer, the rest is added to the step.
#
# Collectives run in rings: in a group of P, a gather or a reduce-scatter takes P - 1 rounds of a P-th of the bytes, and
# an all-reduce takes twice as many rounds. A round takes α + bytes / rate. GPUs are numbered so that the `tp` GPUs of a
# group are neighbours, `dp` spans `tp * dp` GPUs and `pp` spans all. A group that spans at most `gpus_per_node` GPUs
# uses the links `inside`; any other group uses those `between`.
#
# Write `layout_bytes(job, layout)`, `layout_s(job, layout)` for a step, and `place(job)` → the layout that fits into
# `memory_bytes` and trains the most *useful* sequences per second (97 % of the best rate is enough). Sequences beyond
# `useful_sequences` in a step do not count: they are computed for nothing.

# %% given
from itertools import product


def every_layout(job):
    """All layouts of this job, as dicts."""
    gpus = job["nodes"] * job["gpus_per_node"]
    powers = [2**at for at in range(gpus.bit_length())]
    names = ("dp", "tp", "pp", "micro", "micro_batches", "zero", "recompute")
    for dp, tp in product(powers, powers):
        if dp * tp <= gpus:
            for rest in product((1, 4), (1, 4, 16), (0, 1, 3), (False, True)):
                yield dict(zip(names, (dp, tp, gpus // dp // tp, *rest), strict=True))


# %% [markdown]
# **Predict:** 48 blocks of width 6144 (22 billion parameters) run on two nodes of eight GPUs with 80 GB. How many GPUs
# share a block in the best layout if links between nodes have 25 GB/s? And if they had 400 GB/s?

# %%
predict("tp_slow", "With 25 GB/s between nodes, a block is shared by", unit="GPUs")
predict("tp_fast", "With 400 GB/s between nodes, a block is shared by", unit="GPUs")


# %% solve="layout"
def layout_bytes(job, layout):
    """Bytes on the fullest GPU."""
    ### BEGIN SOLUTION
    dp, tp, pp = layout["dp"], layout["tp"], layout["pp"]
    own = job["blocks"] / pp * job["block_parameters"] / tp
    state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
    inputs = layout["micro"] * job["sequence"] * job["hidden"]
    blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
    kept = 34 * inputs / tp * blocks
    if layout["recompute"]:
        kept = 2 * inputs * blocks + 34 * inputs / tp
    return state[layout["zero"]] + kept
    ### END SOLUTION


def layout_s(job, layout):
    """Seconds of a step."""
    ### BEGIN SOLUTION
    dp, tp, pp = layout["dp"], layout["tp"], layout["pp"]
    t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"] / tp
    own = job["blocks"] / pp * job["block_parameters"] / tp

    def sent_s(span, rounds, size):
        link = job["inside"] if span <= job["gpus_per_node"] else job["between"]
        return rounds * (link["alpha_s"] + size / link["byte_per_s"])

    reached = t * h * w / (t * h + h * w + t * w) * job["memory_byte_per_s"]
    computing_s = 6 * own * t / min(job["flop_per_s"], reached)
    sums = 4 * job["blocks"] / pp
    if layout["recompute"]:
        computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
    slot_s = computing_s + sums * sent_s(tp, 2 * (tp - 1), 2 * t * h / tp)
    if pp > 1:
        slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
    times, beside = 2, 1
    if layout["zero"] == 3:
        times, beside = 3 * layout["micro_batches"], layout["micro_batches"]
    data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
    left_s = max(0.0, data_s - beside * computing_s)
    return (layout["micro_batches"] + pp - 1) * slot_s + left_s
    ### END SOLUTION


def place(job):
    """The layout that fits and trains the most useful sequences per second."""

    ### BEGIN SOLUTION
    def useful_per_s(layout):
        count = layout["dp"] * layout["micro"] * layout["micro_batches"]
        return min(count, job["useful_sequences"]) / layout_s(job, layout)

    room = job["memory_bytes"]
    fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
    return max(fitting, key=useful_per_s)
    ### END SOLUTION


# %% check="layout"
check("layout")

# %%
with requires_solution("layout"), reveal_prediction("tp_slow", "tp_fast") as truth:
    placed = {"blocks": 48, "hidden": 6144, "block_parameters": 12 * 6144**2}
    placed |= {"sequence": 2048, "useful_sequences": 64, "memory_bytes": 80e9}
    placed |= {"nodes": 2, "gpus_per_node": 8, "flop_per_s": 400e12}
    placed |= {"memory_byte_per_s": 2e12}
    placed["inside"] = {"alpha_s": 3e-6, "byte_per_s": 450e9}
    best = {}
    for rate in (25e9, 400e9):
        placed["between"] = {"alpha_s": 14e-6, "byte_per_s": rate}
        best[rate] = place(placed)
        print(f"modelled, {rate / 1e9:.0f} GB/s between nodes: {best[rate]}")
        print(f"  modelled: {seconds(layout_s(placed, best[rate]))} per step")
    truth(tp_slow=best[25e9]["tp"], tp_fast=best[400e9]["tp"])

# %% [markdown]
# With slow links between nodes, only gradients should be sent across them. If the links between nodes are nearly as
# fast as those inside, weights can arrive while the previous product is computed. Neither is a general rule: change
# `useful_sequences` or `memory_bytes`, and see what happens.

# %% [markdown]
# ## Where you are

# %%
Progress("lab07b_models_that_do_not_fit")
