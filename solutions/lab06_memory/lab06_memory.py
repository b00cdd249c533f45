# %% [markdown]
# # Memory: what a step keeps
#
# A model of 10 GB needs far more than 10 GB to train. Most of that memory contains neither weights nor optimizer state,
# but what the forward pass saves for the backward pass. In this lab you take a training step that does not fit into
# memory, and make it fit: the same memory then has room for a batch four times as large, with the same result.
#
# After this lab you can
#
# * replace one large batch by several small ones without changing the training, and name what may still change;
# * say what is live at every moment of a step, and what the peak is made of;
# * trade time for memory at the best rate: how many checkpoints are best for equal layers, and what a budget costs;
# * write an activation checkpoint: code that runs a block a second time and does exactly what the first run did;
# * tell "too much" from "fragmented" when memory runs out.
#
# **About 219 minutes (estimated)**, in two sittings: the first ends with section 4. The practice sections carry no
# points; they take another 167 minutes (estimated) and can be done in any order.
#
# | exercise | section | minutes |
# |---|---|---|
# | `mend_accumulation` | 2 | 38 |
# | `memory_timeline` | 3 | 37 |
# | `best_segments` | 4 | 23 |
# | `own_checkpoint` | 5 | 44 |
# | `fragments` | 6 | 47 |
# | `first_three` | 7 | 30 |
#
# | practice | section | minutes |
# |---|---|---|
# | `merge_statistics` | 8 | 27 |
# | `place_checkpoints` | 9 | 47 |
# | `same_or_not` | 10 | 26 |
# | `offload_or_recompute` | 11 | 36 |
# | `method_table` | 12 | 31 |
#
# No GPU is needed: bytes are counted on this machine, whatever it is, and results of a modelled GPU are marked as
# modelled. An MB is 10⁶ bytes, an MiB is 2²⁰ (1.05 MB). *Write your prediction down* before you run the next cell. If
# there is a box, enter a number, with or without its unit, and press Enter. Only then does the result appear next to
# it. Lecture slides are quoted by deck: [001] course introduction, [002] software perspective. `hint("name")` gives
# the hints of an exercise, one at a time.
#
# A check that fails shows the first wrong case and what your code returned; `case("mend_accumulation")` gives that
# case's inputs as Python values, so that you can try your code on them.

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
depth = 16
width = 256
batch = 256

# %% given
from copy import deepcopy

import torch

from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from edl_labs.device import torch_threads
from edl_labs.numerics import SavedTensors, memory_plan, saved_activations
from edl_labs.plots import style
from edl_labs.plots.memory_pictures import draw_memory_plan, u_curve
from edl_labs.ui.budget_widget import BudgetExplorer
from edl_labs.units import byte_count
from edl_labs.virtual.memory import OutOfMemory, Tape, TapeLayer
from edl_labs.virtual.memory import VirtualAllocator, VirtualTape

IGNORED = -100  # the label of positions that do not count, as in torch


def sum_of_losses(scores, labels):
    """The cross entropies of all positions that count, added up."""
    return torch.nn.functional.cross_entropy(
        scores, labels, ignore_index=IGNORED, reduction="sum"
    )


def block(size):
    return torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.GELU())


def tower():
    """Equal blocks, and a head of ten classes; the same weights on every call."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        *(block(width) for _ in range(depth)), torch.nn.Linear(width, 10)
    )


def examples(count):
    """Inputs and labels, the same on every call."""
    drawn = torch.Generator().manual_seed(1)
    return torch.randn(count, width, generator=drawn), torch.randint(
        0, 10, (count,), generator=drawn
    )


# %%
Progress("lab06_memory")

# %% [markdown]
# ## 1. A step that does not fit
#
# For every operation, autograd keeps what its backward pass will need: a linear layer keeps its input, and so does a
# GELU. `SavedTensors` tracks when each of these tensors is saved and freed (with PyTorch's `saved_tensors_hooks`), so
# it can act as a small GPU: when the saved tensors exceed `memory_bytes`, the step fails as it would there.


# %% given
def step_within(model, inputs, labels, memory_bytes):
    """The peak of saved bytes of a step; MemoryError if they exceed the memory."""
    memory = SavedTensors(model.parameters())

    def look(layer, *_):
        if memory.held_bytes > memory_bytes:
            asked, there = byte_count(memory.held_bytes), byte_count(memory_bytes)
            raise MemoryError(
                f"out of memory at {type(layer).__name__}: "
                f"{asked} are held, but the memory is {there}"
            )

    hooks = [
        layer.register_forward_hook(look)
        for layer in model.modules()
        if not list(layer.children())
    ]
    try:
        with memory.watching():
            (sum_of_losses(model(inputs), labels) / len(labels)).backward()
    finally:
        for hook in hooks:
            hook.remove()
    return memory.peak_bytes


# %% [markdown]
# **Predict:** the tower has `depth` blocks of a linear layer and a GELU, `width` wide, in fp32. How many bytes does a
# step with `batch` examples keep? And what happens with four times as many examples, if there is room for twice the
# bytes of the first step?

# %%
predict("one_batch", f"A step with {batch} examples keeps", unit="MB")

# %%
with reveal_prediction("one_batch") as truth:
    held_bytes = step_within(tower(), *examples(batch), memory_bytes=1 << 60)
    memory_bytes = int(2 * held_bytes)
    print(
        f"measured here: {byte_count(held_bytes)} for {batch} examples; "
        f"the memory is {byte_count(memory_bytes)}"
    )
    counted = (2 * depth + 1) * batch * width * 4
    print(f"two tensors per block, and the head's input: {byte_count(counted)}")
    try:
        step_within(tower(), *examples(4 * batch), memory_bytes)
    except MemoryError as error:
        print(f"{4 * batch} examples: {error}")
    truth(held_bytes)

# %% [markdown]
# The saved bytes grow with the batch and with the depth; the weights do not grow with the batch. So there are two
# solutions: run a smaller batch at a time, or keep less of each layer. By the end you will need both.

# %% [markdown]
# ## 2. A large batch made of small ones
#
# With *gradient accumulation*, micro-batches run one after the other, and `.backward()` adds to what is already in
# `.grad`. Deck [002] shows it like this:
#
# ```python
# optimizer.zero_grad()
# for i, batch in enumerate(batches):
#     loss = loss_fn(model(batch)) / NUM_ACCUMULATION_STEPS
#     loss.backward()
#     if (i + 1) % NUM_ACCUMULATION_STEPS == 0 or (i + 1) == len(batches):
#         optimizer.zero_grad()
#         optimizer.step()
# ```
#
# **Predict:** it runs with 10 batches and 4 accumulation steps. Call four batches in a row a window. How far do the
# weights move, compared with training in which each window is one large batch?

# %%
how_far = ("just as far", "half as far", "four times as far", "not at all")
predict("weights_move", "The weights move", choices=how_far)


# %%
def as_on_the_slide(model, batches, optimizer, *, window):
    """Deck [002]'s loop; returns the number of its steps."""
    steps = 0
    for number, (inputs, labels) in enumerate(batches):
        (sum_of_losses(model(inputs), labels) / len(labels) / window).backward()
        if (number + 1) % window == 0 or number + 1 == len(batches):
            optimizer.zero_grad()
            optimizer.step()
            steps += 1
    return steps


# %%
def apart(model, other):
    """The largest difference between two models' weights."""
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


# %%
model, inputs, labels = tower(), *examples(40)
before = deepcopy(model)
batches = list(zip(inputs.split(4), labels.split(4), strict=True))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = as_on_the_slide(model, batches, optimizer, window=4)
moved = apart(model, before)
with reveal_prediction("weights_move") as truth:
    print(f"measured here: {len(batches)} batches, {steps} steps,", end=" ")
    print(f"and the weights moved by {moved}")
    print("the sum of four passes is cleared one line before it is used")
    truth("just as far" if moved else "not at all")

# %% [markdown]
# The misplaced `zero_grad` is easy to notice. Once `step` and `zero_grad` are in the right order, two less obvious
# mistakes are left:
#
# * the windows have 4, 4 and **2** batches, but all are divided by 4: the last step is half as long as it should be;
# * a mean of means is the overall mean only if all batches have equally many positions. In language models they do not:
#   padding is ignored, and texts differ in length. Widely used trainers got this wrong for years.
#
# Write `train_accumulated(model, batches, optimizer, window=...)`. `batches` is a list of `(inputs, labels)`, of any
# length; positions with the label `IGNORED` do not count. The optimizer takes one step for each window of `window`
# micro-batches, in order, and one for those left over at the end. Each step must equal that of **one large batch**
# whose loss is the **mean over all positions in the window that count**. Every window has some such positions, but a
# micro-batch may have none. Memory has room for only one micro-batch at a time: run each through the model once,
# separately, even if none of its positions counts. There may already be gradients in `.grad` when your function is
# called. Return the mean loss of each window, as numbers or one-element tensors. `sum_of_losses(scores, labels)` adds
# up the losses that count. A third of the points is for the right order of `step` and `zero_grad`, a third for the
# shorter last window, and a third for counting positions correctly.


# %% solve="mend_accumulation"
def train_accumulated(model, batches, optimizer, *, window):
    """The mean loss of each window; one step of the optimizer for each."""
    ### BEGIN SOLUTION
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        counted = sum(int((labels != IGNORED).sum()) for _, labels in part)
        optimizer.zero_grad()
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / counted
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
    ### END SOLUTION


# %% check="mend_accumulation"
check("mend_accumulation")


# %%
def step_in_parts(model, inputs, labels, *, size):
    """Loss and peak bytes of one step on parts of `size` examples each."""
    # Copies of the parts: a slice would keep all of the large batch in memory.
    cut = zip(inputs.split(size), labels.split(size), strict=True)
    parts = [(x.clone(), y) for x, y in cut]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with SavedTensors(model.parameters()).watching() as memory:
        (loss,) = train_accumulated(model, parts, optimizer, window=len(parts))
    return loss, memory.peak_bytes


# %%
with requires_solution("mend_accumulation"), torch_threads(1):
    large, small = tower(), tower()
    inputs, labels = examples(4 * batch)
    for model, size in ((large, 4 * batch), (small, batch)):
        loss, peak_bytes = step_in_parts(model, inputs, labels, size=size)
        told = f"loss {loss:.6f}, {byte_count(peak_bytes)} at the peak"
        print(f"measured here: {4 * batch // size} x {size}: {told}")
    print(f"weights differ by at most {apart(large, small):.1e}")

# %% [markdown]
# It is the same step, up to the last bits of fp32, with a quarter of the saved tensors. (Weights, gradients and the
# optimizer's state are not in these figures: they stay the same.) Accumulation has a cost. The matrices of a
# micro-batch are smaller, and below the ridge point, that makes the device slower. Layers that look *across* a batch
# now get only a micro-batch. A batch norm normalises each micro-batch with its own mean and variance, and updates its
# running statistics once per micro-batch: four times as often (section 8 merges the parts' statistics). Dropout draws
# different masks, which is only noise. Clipping and the loss scaler's update belong to the step, not to the
# micro-batch.

# %% [markdown]
# ## 3. What is live, and when
#
# Before you save memory, find out what is large, and *when*. Take a network in fp32 with Adam. At every moment of a
# step, memory holds some of these four things:
#
# * **parameters**: always, 4 bytes each;
# * **optimizer state**: none for sgd, one value per parameter for momentum, two for adam. The *first* step creates it,
#   and then it stays;
# * **gradients**: each layer's backward pass creates them. `zero_grad` frees them (`set_to_none`, torch's default) or
#   fills them with zeros; then they stay, and the next backward pass adds to them in place;
# * **saved activations**: from a layer's forward pass to its backward pass. A layer that works **in place** overwrites
#   its input, which is already in memory, with its result: it adds nothing, whatever its `activation_bytes` are.
#
# **Predict:** take the step from section 1 that did not fit, with `4 * batch` examples, on a GPU with room for it. It
# is the second step of a training run with Adam, and `zero_grad` sets gradients to None. Which of the four is largest?
# And when is the total largest?

# %%
parts_of_a_step = ("parameters", "optimizer", "gradients", "activations")
moments_of_a_step = (
    "as backward begins",
    "as backward ends",
    "in the optimizer's step",
)
predict("holds_most", "The largest of the four:", choices=parts_of_a_step)
predict("fullest", "The total is largest", choices=moments_of_a_step)

# %%
inputs, labels = examples(4 * batch)
plan = memory_plan(
    tower(),
    inputs,
    "H200",
    loss=lambda scores: sum_of_losses(scores, labels),
    optimizer="adam",
)
phases = [moment.phase for moment in plan.moments]
begins, ends = phases.index("backward"), phases.index("optimizer")

# %%
with reveal_prediction("holds_most", "fullest") as truth:
    print(f"predicted without running the step:\n{plan}")
    held, at = plan.peak.held_bytes, plan.moments.index(plan.peak)
    which = 2 if at >= ends else 1 if at > (begins + ends) / 2 else 0
    truth(holds_most=max(held, key=held.get), fullest=moments_of_a_step[which])
    title = "A step of the tower, from its operations"
    axes = draw_memory_plan(style.subplots(figsize=(9, 3.2))[1], plan, title=title)

# %% [markdown]
# Write
#
# * `timeline(layers, optimizer=..., first=..., set_to_none=...)` → live bytes, in this order: after the forward pass of
#   each layer, after the backward pass of each layer (from the last one to the first), after the optimizer's step,
#   after `zero_grad`. A layer is a dict with `parameters` (their number), `activation_bytes` and `inplace`; `optimizer`
#   is `"sgd"`, `"momentum"` or `"adam"`; `first` says whether this is the first step of the training. If it is not, a
#   step like this one came before it, and what that step left (optimizer state, gradients filled with zeros) is in
#   memory from the start.
# * `peak(live)` → `(bytes, place)`: the largest value of the list, and the first index (from 0) that has it.
#
# Do not count the batch, or anything that a pass needs only while it runs.


# %% solve="memory_timeline"
def timeline(layers, *, optimizer, first, set_to_none):
    """Live bytes after each part of a training step."""
    ### BEGIN SOLUTION
    parameters = 4 * sum(layer["parameters"] for layer in layers)
    state = {"sgd": 0, "momentum": 1, "adam": 2}[optimizer] * parameters
    are_zeros = not first and not set_to_none
    live, moments = parameters, []
    if not first:
        live += state
    if are_zeros:
        live += parameters
    for layer in layers:
        live += 0 if layer["inplace"] else layer["activation_bytes"]
        moments.append(live)
    for layer in reversed(layers):
        live -= 0 if layer["inplace"] else layer["activation_bytes"]
        live += 0 if are_zeros else 4 * layer["parameters"]
        moments.append(live)
    if first:
        live += state
    moments.append(live)
    moments.append(live - parameters if set_to_none else live)
    return moments
    ### END SOLUTION


def peak(live):
    """The most bytes, and the first place in the list that has them."""
    ### BEGIN SOLUTION
    return max(live), live.index(max(live))
    ### END SOLUTION


# %% check="memory_timeline"
check("memory_timeline")

# %%
with requires_solution("memory_timeline"):
    block_of = {"parameters": width * width + width, "inplace": False}
    layers = [{**block_of, "activation_bytes": 2 * 4 * batch * width * 4}] * depth
    live = timeline(layers, optimizer="adam", first=False, set_to_none=True)
    print(
        f"your timeline of the tower: {byte_count(peak(live)[0])} "
        f"at moment {peak(live)[1]} of {len(live)}"
    )
    print(f"from its operations: {byte_count(plan.peak_bytes)} in {plan.peak.phase}")
    print(f"parameters and optimizer: {byte_count(live[-1])}")

# %% [markdown]
# The peak that is counted operation by operation is higher than that of your timeline. It also counts what a pass
# needs while it runs (the gradient that it passes on), the head, and the batch (section 2 counted the batch as saved,
# because the first layer reads it). A peak at the end of the forward pass means too many activations. A peak in the
# optimizer's step means too many parameters, and then checkpoints save nothing.

# %% [markdown]
# ## 4. Keep some, run the rest again
#
# *Checkpointing* (deck [002]) cuts the network into segments and keeps only the *input* of each. The backward pass runs
# a segment's forward pass again just before the segment's own backward pass. PyTorch's `checkpoint_sequential` cuts n
# layers into c segments of n // c layers. Left-over layers go to the **last** segment, which runs without a checkpoint,
# since its backward pass follows at once.
#
# **Predict:** take 64 layers with two saved tensors each: 128 in all. How many are held at most with 4 segments, and
# how many with 32? And which number of segments, 4, 8, 16 or 32, holds the fewest?

# %%
predict("in_four", "With 4 segments, the most tensors held at once is", unit="tensors")
predict("in_many", "With 32 segments, the most tensors held at once is", unit="tensors")
middle = ("4 only", "8 only", "16 only", "32 only", "8 and 16", "16 and 32")
predict("fewest", "The fewest tensors are held with", choices=middle)


# %%
class Chain(torch.nn.Module):
    """Small layers, each a linear layer and a GELU, checkpointed in segments."""

    def __init__(self, layers, segments):
        super().__init__()
        small = (torch.nn.Linear(8, 8), torch.nn.GELU())
        self.layers = torch.nn.Sequential(
            *(torch.nn.Sequential(*deepcopy(small)) for _ in range(layers))
        )
        self.segments = segments

    def forward(self, x):
        return checkpoint_sequential(self.layers, self.segments, x, use_reentrant=True)


# %%
def held_here(layers, segments):
    """Saved tensors at the peak of a real backward pass, counted by hooks."""
    chain = Chain(layers, segments)
    x = torch.zeros(2, 8, requires_grad=True)
    return saved_activations(chain if segments > 1 else chain.layers, x).count


# %%
counts = {segments: held_here(64, segments) for segments in (1, 4, 8, 16, 32)}
with reveal_prediction("in_four", "in_many", "fewest") as truth:
    print(f"measured here: {counts}")
    best = [str(n) for n in counts if counts[n] == min(counts.values())]
    fewest = " and ".join(best) if len(best) > 1 else f"{best[0]} only"
    truth(in_four=counts[4], in_many=counts[32], fewest=fewest)
    axes = u_curve(style.subplots(figsize=(7, 3))[1], counts, layers=64)

# %% [markdown]
# With few segments, the largest one saves many tensors. With many segments, there are many inputs to keep. What is the
# best number in between, for any number of layers?
#
# Write `best_segments(layers, saved_per_layer)` → `(segments, held, again)`: the number of segments (1 to `layers`;
# with 1 nothing is checkpointed) that holds the fewest tensors at the peak, how many tensors that is, and how many
# layers run forward again. If several numbers hold equally few tensors, return the smallest: it runs the fewest layers
# again. The peak consists of the inputs of all segments except the last (one tensor each; that of the first is the
# network's own input) and everything that the largest segment saves. You may call `checkpointed_peak` from
# `edl_labs.numerics`, which counts them for one number of segments.


# %% solve="best_segments"
def best_segments(layers, saved_per_layer):
    """The best (segments, tensors held at the peak, layers that run again)."""
    ### BEGIN SOLUTION
    tried = []
    for segments in range(1, layers + 1):
        size = layers // segments
        held = segments - 1 + saved_per_layer * (size + layers % segments)
        tried.append((held, size * (segments - 1), segments))
    held, again, segments = min(tried)
    return segments, held, again
    ### END SOLUTION


# %% check="best_segments"
check("best_segments")

# %%
with requires_solution("best_segments"):
    for layers in (16, 23, 64, 83, 100, 144):
        segments, held, again = best_segments(layers, 2)
        print(
            f"{layers:3} layers: {segments:2} segments hold {held} "
            f"(measured here: {held_here(layers, segments)}), {again} run again"
        )

# %% [markdown]
# Nine times as many layers hold three times as many tensors: deck [002] says O(√n) memory for one more forward pass. If
# a backward pass takes twice as long as a forward pass, that is at most 4/3 of the time. With c segments of n / c
# layers and s tensors per layer, c + s * n / c is smallest at c = √(s * n), which is close to √n. The left-over layers
# of the last segment shift the optimum again: 7 segments are best for 23 layers, 9 for 83, and 16 for 144.

# %% [markdown]
# ## 5. Running again is not so simple
#
# The second run must do *exactly* what the first one did. **Predict:** the second run of a checkpointed block draws a
# new mask for its dropout (50 %). For what share of the elements do both masks agree?

# %%
predict("same_masks", "The share of elements on which both masks agree is", unit="%")


# %%
def equal_masks(*, keep):
    """The share of elements on which both runs of a checkpointed dropout agree."""
    runs = []

    def dropped(x):
        runs.append(torch.nn.functional.dropout(x, 0.5))
        return runs[-1]

    x = torch.ones(10_000, requires_grad=True)
    checkpoint(dropped, x, use_reentrant=True, preserve_rng_state=keep).sum().backward()
    return ((runs[0] != 0) == (runs[1] != 0)).float().mean().item()


# %%
with reveal_prediction("same_masks") as truth:
    for keep in (True, False):
        agree = equal_masks(keep=keep)
        print(
            f"measured here: preserve_rng_state={keep}: {agree:.0%} of the masks agree"
        )
    truth(agree)

# %% [markdown]
# With a different mask, the gradient belongs to a network that never produced this output. No error is raised, but the
# training becomes worse. The second run must also use the autocast dtype of the first run, although it runs in the
# backward pass, outside the `with` block.
#
# `use_reentrant=True` selects torch's older method: a `torch.autograd.Function` whose backward pass runs the block
# again and starts its own backward pass inside the current one. `False` selects the newer method, which uses hooks. You
# write the older one. A Function has two static methods: `forward` computes the output and stores what `backward` will
# need, and `backward` gets the gradient of the output and returns one gradient for each argument of `forward`:


# %%
class ScaledProduct(torch.autograd.Function):
    """factor * a * b, with its own backward pass."""

    @staticmethod
    def forward(ctx, factor, a, b):
        ctx.save_for_backward(a, b)  # tensors
        ctx.factor = factor  # anything else
        return factor * a * b

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return None, ctx.factor * b * gradient, ctx.factor * a * gradient


# %%
a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
ScaledProduct.apply(10, a, b).backward()
print(f"gradients of 10 * a * b at a = 2, b = 5: {a.grad.item():g}, {b.grad.item():g}")

# %% [markdown]
# Write the class `Checkpoint`, a `torch.autograd.Function`, such that `Checkpoint.apply(run, *inputs)` returns the same
# tensor as `run(*inputs)`, with the same gradients, and
#
# * keeps **only the inputs** for the backward pass. Save input tensors with `ctx.save_for_backward`, where hooks can
#   track them (section 1 counts nothing else). Store anything else, such as numbers and the generator's state, as
#   attributes of `ctx` (`forward` of a Function runs without a graph);
# * runs `run` once again in the backward pass, under `torch.enable_grad()`, with the random numbers and the autocast
#   state of the first run (`torch.get_rng_state()`, `torch.is_autocast_enabled("cpu")`,
#   `torch.get_autocast_dtype("cpu")`), and leaves the generator as it found it. The second run's graph must begin at
#   its inputs: a saved tensor is still connected to the graph that produced it, and a backward pass would continue
#   there;
# * accepts inputs that are tensors, with or without `requires_grad`, and inputs that are not tensors (numbers);
# * returns one gradient for each argument, `None` for `run` and for arguments without one. Calling `backward` on the
#   second run's output also fills the `.grad` of weights inside `run`, as it must.
#
# Handle only the CPU's generator and autocast. The first input always requires a gradient. `run` may compute something
# different in its second run, as layers that keep statistics do: the output comes from the first run, and the gradients
# come from the second. Hooks that compress a saved tensor may return it slightly changed; the second run uses what they
# return. The check calls `backward(inputs=[x])`, which requests the gradient of only one input. torch's reentrant
# checkpoint refuses that, so write your own. With `inputs=[x]`, your Checkpoint must still fill the `.grad` of the
# weights inside `run`.


# %% solve="own_checkpoint"
class Checkpoint(torch.autograd.Function):
    """Runs a function, keeps only its inputs, and runs it again going backward."""

    @staticmethod
    def forward(ctx, run, *inputs):
        ### BEGIN SOLUTION
        tensors = [one if isinstance(one, torch.Tensor) else None for one in inputs]
        ctx.save_for_backward(*tensors)
        ctx.run, ctx.others = (
            run,
            [None if isinstance(one, torch.Tensor) else one for one in inputs],
        )
        ctx.random_state = torch.get_rng_state()
        ctx.autocast = {
            "enabled": torch.is_autocast_enabled("cpu"),
            "dtype": torch.get_autocast_dtype("cpu"),
        }
        return run(*inputs)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        inputs = [
            other
            if tensor is None
            else tensor.detach().requires_grad_(tensor.requires_grad)
            for tensor, other in zip(ctx.saved_tensors, ctx.others, strict=True)
        ]
        with (
            torch.random.fork_rng(devices=[]),
            torch.enable_grad(),
            torch.autocast("cpu", **ctx.autocast),
        ):
            torch.set_rng_state(ctx.random_state)
            output = ctx.run(*inputs)
        output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in inputs)
        ### END SOLUTION


# %% check="own_checkpoint"
check("own_checkpoint")

# %% [markdown]
# **Predict:** `run` is a batch norm with a momentum of 0.1: its running mean becomes `0.9 * running + 0.1 * new`. The
# running mean starts at 0, and the batch has a mean of 0.5. What is it after one step, forward and backward, through
# your `Checkpoint`, as a percentage of 0.5?

# %%
predict("moved_twice", "The running mean has reached", unit="%")

# %%
with requires_solution("own_checkpoint"), reveal_prediction("moved_twice") as truth:
    for name, call in (
        ("plain", lambda run, x: run(x)),
        ("Checkpoint", Checkpoint.apply),
    ):
        norm = torch.nn.BatchNorm1d(1)
        x = torch.tensor([[0.0], [1.0]], requires_grad=True)
        call(norm, x).sum().backward()
        print(f"measured here: {name}: {norm.running_mean.item():.3f}")
    print("the second run moved it again")
    truth(norm.running_mean.item() / 0.5)

# %% [markdown]
# Your class cannot know what a second run changes. `torch.utils.checkpoint` has the same flaw. So layers that update
# something, or that draw random numbers which cannot be drawn again, must run only once: do not checkpoint them.

# %% [markdown]
# ## 6. Out of memory: how much is too much?
#
# PyTorch does not request memory from the driver for every tensor, and does not return a tensor's memory to the driver
# (deck [001]: *memory not released immediately*): its **caching allocator** keeps the memory for the next tensor.
#
# **Predict:** on a device with 170 MiB, 16 tensors of 8 MiB are allocated, then every second one is freed: 64 MiB are
# in use. Is there room for a tensor of 40 MiB?

# %%
predict("room", "For 40 MiB there is", choices=("room", "no room"))

# %%
allocator = VirtualAllocator(memory_bytes=170 << 20)
tensors = [allocator.malloc(8 << 20) for _ in range(16)]
for number in tensors[::2]:
    allocator.free(number)
with reveal_prediction("room") as truth:
    try:
        allocator.malloc(40 << 20)
        truth("room")
    except OutOfMemory as error:
        print(f"modelled: {error.what}")
        truth("no room")
    used, got = allocator.replay().allocated_bytes, allocator.replay().reserved_bytes
    print(f"modelled: {used >> 20} MiB are in use, of {got >> 20} MiB from the driver")

    axes = allocator.replay().plot(style.subplots(figsize=(9, 3))[1])

# %% [markdown]
# If there is no room, torch's error message says how many bytes are reserved but not in use. The allocator asks the
# driver for *segments* and cuts *blocks* from them:
#
# * a request is rounded up to a multiple of 512 bytes. Up to and including 1 MiB it belongs to the `small` pool, above
#   that to the `large` pool;
# * a new segment has 2 MiB for a small request, 20 MiB for a large request below 10 MiB, and otherwise the size of the
#   request, rounded up to a multiple of 2 MiB;
# * a free block serves only requests of its own pool and its own **stream**, and a block never spans segments;
# * before the allocator gives up, it returns all segments **without a block in use**, whatever their stream, to the
#   driver and asks the driver once more. `torch.cuda.empty_cache()` returns exactly the same segments.
#
# In the picture, every segment has a block in use, so none is returned, and no free block has 40 MiB.
#
# Write `why_oom(segments, request_bytes, stream=..., free_bytes=...)` → `(answer, bytes)`. A segment is a dict with
# `pool`, `stream` and `blocks`; a block has `bytes` and `in_use`. `free_bytes` is what the driver has left. `bytes` is
# what `empty_cache` would give back, whatever the answer is. Round the request up before you compare anything. To find
# the answer, test these conditions in order; the first one that is true decides:
#
# 1. `"fits"`: a free block of the request's pool and stream is large enough.
# 2. `"new segment"`: the driver has enough for the new segment, together with what `empty_cache` gives back.
# 3. `"other stream"`: a free block of the request's pool, but of a different stream, is large enough.
# 4. `"fragmented"`: all free blocks, of every pool and stream, plus the driver's bytes add up to at least the request.
# 5. `"too much"`: otherwise.


# %% solve="fragments"
def why_oom(segments, request_bytes, *, stream, free_bytes):
    """What becomes of a request, and the bytes that empty_cache would give back."""
    ### BEGIN SOLUTION
    size = -(-request_bytes // 512) * 512
    pool = "small" if size <= 1 << 20 else "large"
    asked = (
        2 << 20
        if pool == "small"
        else 20 << 20
        if size < 10 << 20
        else -(-size // (2 << 20)) * (2 << 20)
    )
    holes = [
        (one, block["bytes"])
        for one in segments
        for block in one["blocks"]
        if not block["in_use"]
    ]
    returned = sum(
        found
        for one, found in holes
        if not any(block["in_use"] for block in one["blocks"])
    )
    streams = [
        one["stream"] for one, found in holes if one["pool"] == pool and found >= size
    ]
    if stream in streams:
        return "fits", returned
    if free_bytes + returned >= asked:
        return "new segment", returned
    if streams:
        return "other stream", returned
    everything = free_bytes + sum(found for _, found in holes)
    return "fragmented" if everything >= size else "too much", returned
    ### END SOLUTION


# %% check="fragments"
check("fragments")

# %% [markdown]
# Only one of the five answers says that the training is too large. Deck [002] recommends `empty_cache()` among its
# optimisations. You now know that it never closes a hole, and that torch does the same automatically before it gives
# up. Each call also waits for the device. `gc.collect()`, which the deck adds, frees only objects kept alive by
# reference cycles, such as the frames of a caught exception: it is useful once, but useless in every step.
#
# Growing batches also make torch reserve more than it uses. A tensor of 12 MB is allocated and freed, then one of 16
# MB, and so on up to 60 MB, on a device with room for all of them. There is never more than one at a time:

# %%
for expandable in (False, True):
    pool = VirtualAllocator(expandable_segments=expandable)
    for size in range(12, 64, 4):
        pool.free(pool.malloc(size * 10**6))
    print(
        f"modelled: expandable_segments={expandable}: "
        f"{byte_count(pool.reserved_bytes)} reserved"
    )

# %% [markdown]
# No old segment is large enough for the next tensor, and none is returned while the driver has more memory. Three
# things reduce fragmentation. Ask for fewer sizes (pad to a few lengths). Allocate long-lived tensors before
# short-lived ones (ZeRO's *constant buffers* and *contiguous memory* in [002]'s list do that). Start Python with
# `PYTORCH_ALLOC_CONF=expandable_segments:True` (older versions call it `PYTORCH_CUDA_ALLOC_CONF`, which is still read):
# its segments grow in place.

# %% [markdown]
# ## 7. Four times the batch, in the same memory
#
# Now back to the step from section 1, with the class that you wrote in section 5. The memory has room for twice the
# bytes that a step of `batch` examples saves. Your checkpoints cost only time: less than one additional forward pass.
# **Predict:** with how many segments will four times the batch fit?

# %%
predict("fits_with", "The fewest segments that fit:", choices=("1", "2", "4", "8"))


# %%
class InSegments(torch.nn.Module):
    """A tower whose segments, except the last one, are run by a Checkpoint."""

    def __init__(self, model, count):
        super().__init__()
        layers, size = list(model), len(model) // count
        parts = [layers[i * size : (i + 1) * size] for i in range(count - 1)] + [
            layers[(count - 1) * size :]
        ]
        self.parts = torch.nn.ModuleList(torch.nn.Sequential(*part) for part in parts)

    def forward(self, x):
        for part in self.parts[:-1]:
            x = Checkpoint.apply(part, x)
        return self.parts[-1](x)


# %%
def peak_of(count):
    """What a step with `count` segments holds, in words, and whether it fits."""
    inputs, labels = examples(4 * batch)
    model = InSegments(tower(), count)
    try:
        held = step_within(model, inputs.requires_grad_(), labels, memory_bytes)
    except MemoryError as error:
        return str(error), False
    return f"{byte_count(held)} at the peak", True


# %%
with (
    requires_solution("own_checkpoint"),
    reveal_prediction("fits_with") as truth,
    torch_threads(1),
):
    enough = []
    for count in (1, 2, 4, 8):
        told, fits = peak_of(count)
        print(f"measured here: segments: {count}, {4 * batch} examples: {told}")
        enough += [str(count)] if fits else []
    print(f"the memory is {byte_count(memory_bytes)}")
    truth(enough[0] if enough else "none of these")

# %% [markdown]
# Segments with equal numbers of layers suit equal layers. In a real network the layers differ, and memory is a
# *budget*: if there is room for everything, nothing should run again. So a plan lists **stretches**: series of adjacent
# layers that run again as a whole, and of which only the last output is kept until then. All other layers are kept.
# Among the plans that fit the budget, we want the fastest. (In section 9 you write the search.)
#
# Here is that search, on the step from section 3, modelled on an H200; in a live notebook, drag the budget:

# %%
explorer = BudgetExplorer(plan)
print(f"the peak in section 3: {byte_count(plan.peak_bytes)}")
print(f"the search's own peak, all kept: {byte_count(explorer.kept.peak_bytes)}")
print(f"live all the time: {byte_count(explorer.tape.resident_bytes)}")
explorer

# %% [markdown]
# The search counts more than section 3 did. It assumes that the gradients of all weights, which need as many bytes as
# the parameters, are in memory from the start. For each layer, it also counts the incoming gradient and the one that is
# passed on. Checkpoints cannot reduce what is live all the time: with half the memory, that leaves so little room that
# no plan fits. Then smaller micro-batches help, or an optimizer that keeps less.

# %% [markdown] explain="first_three"
# **Explain (read by your instructor).** A model of 1.5 billion parameters is to be trained with Adam in fp32 on one GPU
# of 40 GB. It has 36 equal layers. Their activations take 900 MB per example in all, in fp32, and what one layer passes
# to the next is a tenth of what it saves. The batch should have 64 examples; a forward pass with 64 takes 0.9 s, a
# backward pass takes 1.8 s, and fewer than 32 examples at a time no longer fill the GPU. The step does not fit. Write,
# in about eight lines:
#
# 1. how many bytes each part needs now, and which part is too large;
# 2. the **first three** methods that you would apply, in order, from this lab or not. For each method give the bytes
#    that it saves, the seconds that it adds to a step, and the reason for its place in the order. Say after which
#    method the step fits.

# %% [markdown]
# ## 8. Practice: the statistics of a batch norm
#
# From here on, everything is optional and carries no points. A batch norm in training normalises with the mean and the
# (biased) variance of *its* batch, and keeps running statistics for later: `running = (1 - momentum) * running +
# momentum * new`, with the unbiased variance (divided by count - 1).
#
# **Predict:** its momentum is 0.1, its running mean is 0, and every batch has a mean of 1. What is the running mean
# after one batch of 64? And after the same 64 in four micro-batches? Give both as a percentage of the batch's mean.

# %%
predict("after_one", "After one batch, the running mean has reached", unit="%")
predict("after_four", "After four micro-batches, it has reached", unit="%")

# %%
values = torch.randn(64, 1, generator=torch.Generator().manual_seed(2))
values = 1 + values - values.mean()
running = {}
with reveal_prediction("after_one", "after_four") as truth:
    for parts in (1, 4):
        norm = torch.nn.BatchNorm1d(1)
        for part in values.split(64 // parts):
            norm(part)
        running[parts] = norm.running_mean.item()
        print(
            f"measured here: micro-batches: {parts}, running mean {running[parts]:.3f}"
        )
    print(f"of the old value, four updates leave {0.9**4:.4f}, one leaves {0.9:.4f}")
    truth(after_one=running[1], after_four=running[4])

# %% [markdown]
# Micro-batches change a batch norm in two ways: each micro-batch is normalised with its own statistics, and the running
# statistics are updated more often. On several GPUs, each with its part of the batch, each part is normalised with its
# own statistics, too. The fix is to merge the parts' statistics into those of the whole batch *before* normalising.
# Only the count, mean and variance of each part must be sent.
#
# Write
#
# * `merge_statistics(parts)` → `(mean, variance)` of all values together; the variance is biased. A part is a dict with
#   `count`, `mean` and `variance` (also biased; 0.0 for a single value).
# * `running_statistics(running, parts, momentum=...)` → `(mean, variance)` that a batch norm keeps after **one** batch
#   made of these parts; `running` is the pair from before. The batch has two values or more.
#
# The values may be far from zero (a mean of 10 000 with a deviation of 0.01). Squares of such numbers differ only in
# their last digits.


# %% solve="merge_statistics"
def merge_statistics(parts):
    """The mean and the biased variance of a batch, from those of its parts."""
    ### BEGIN SOLUTION
    count = sum(part["count"] for part in parts)
    mean = sum(part["count"] * part["mean"] for part in parts) / count
    spread = sum(
        part["count"] * (part["variance"] + (part["mean"] - mean) ** 2)
        for part in parts
    )
    return mean, spread / count
    ### END SOLUTION


def running_statistics(running, parts, *, momentum):
    """The running mean and variance of a batch norm after one batch made of `parts`."""
    ### BEGIN SOLUTION
    count = sum(part["count"] for part in parts)
    mean, variance = merge_statistics(parts)
    fresh = (mean, variance * count / (count - 1))
    kept = [(1 - momentum) * one for one in running]
    return kept[0] + momentum * fresh[0], kept[1] + momentum * fresh[1]
    ### END SOLUTION


# %% check="merge_statistics"
check("merge_statistics")

# %%
with requires_solution("merge_statistics"):
    parts = []
    for one in values.double().split(16):
        mean, variance = one.mean().item(), one.var(correction=0).item()
        parts.append({"count": len(one), "mean": mean, "variance": variance})
    (norm := torch.nn.BatchNorm1d(1, dtype=torch.float64))(values.double())
    mean, variance = running_statistics((0.0, 1.0), parts, momentum=0.1)
    print(
        f"measured here: BatchNorm1d on all: {norm.running_mean.item():.6f}, "
        f"{norm.running_var.item():.6f}"
    )
    print(f"merged from four parts:     {mean:.6f}, {variance:.6f}")

# %% [markdown]
# An average of variances misses the variance *between* the parts. `SyncBatchNorm` sends about as much as your function
# needs: a mean and `1/std` for each channel, and one count for all of them, which is 2C + 1 numbers per rank.

# %% [markdown]
# ## 9. Practice: layers are not equal
#
# In a real network, the first layers may save the most and the last ones take the longest, or the other way round. And
# the memory need not be as small as possible: it is a **budget**, and the step should be as fast as the budget allows.
# Here you write the search that section 7 showed.
#
# `VirtualTape` is a training step on layers whose sizes and run times are known. It raises an error for impossible
# steps, such as a backward pass without activations or a second run without an input. Its replay shows what was held
# and how long the step took.
#
# | call | |
# |---|---|
# | `step.forward(i, keep=True)` | runs layer i; holds everything that it saves, or with `keep=False` only its output |
# | `step.drop(i)` | frees everything held for layer i, including its output |
# | `step.recompute(i)` | runs layer i again and holds everything that it saves; needs the output of layer i - 1 |
# | `step.backward(i)` | needs everything that layer i saves and the output of layer i - 1; frees layer i |
# | `step.replay()` | has `.peak_bytes`, `.makespan_s`, `.recomputed_s`, and `.plot()` |
#
# If an error says that an output `is not in memory`, it was dropped, or its layer has run backward or has not run yet.

# %%
sizes = {"activation_bytes": 9_000_000, "output_bytes": 2_000_000}
example = Tape.chain(6, **sizes, forward_s=1e-3, backward_s=2e-3)
for name, keep in (("keeps all", True), ("runs each again", False)):
    step = VirtualTape(example)
    for i in range(6):
        step.forward(i, keep=keep)
    for i in reversed(range(6)):
        if not keep:
            step.recompute(i)
        step.backward(i)
    print(f"{name}: {step.replay()}")

# %% [markdown]
# A **stretch** `(start, stop)` is the series of layers start, ..., stop - 1, which run again as a whole. In the forward
# pass, only the output of its last layer is kept, and each earlier output is freed as soon as the next layer has read
# it. Before the backward pass of its last layer, the stretch runs again from its start, and now holds everything.
#
# **Predict:** layers 0 to 3 save 9 MB each and have outputs of 2 MB each. How much is held at most while the stretch
# (0, 4) runs again? And how much is held after its first forward pass?

# %%
predict("run_again", "While it runs again, it holds at most", unit="MB")
predict("waiting", "After its first forward pass, it holds", unit="MB")

# %%
with reveal_prediction("run_again", "waiting") as truth:
    layer = example.layers[0]
    saved, handed_on = 4 * layer.activation_bytes, layer.output_bytes
    print(f"everything that four layers save: {byte_count(saved)}")
    print(f"the output of its last layer: {byte_count(handed_on)}")
    truth(run_again=saved, waiting=handed_on)

# %% [markdown]
# Write
#
# * `run_step(step, stretches)`: runs a whole step that does this for the `stretches` and keeps all other layers. There
#   are `len(step.tape.layers)` layers. Stretches are in order and share no layer; one may begin where another ends.
#   Begin with this function: until you change `place`, the check looks only at `run_step`;
# * `place(layers, budget_bytes)` → the list of stretches `(start, stop)` with which the peak stays within the budget
#   and the step takes the least time (2 % more is allowed); a second run takes `forward_s` again. A layer is a dict
#   with `name`, `activation_bytes` (everything that it saves, including its output), `output_bytes`, `forward_s`,
#   `backward_s` and `once`: layers whose `once` is true update statistics, like a batch norm, and must not run again.
#   There are at most nine layers, so you can try every plan; at least one plan always fits the budget.
#
# You can measure a plan's bytes and seconds on a tape made from such dicts:
#
# ```python
# given = case("place_checkpoints")
# step = VirtualTape(tape_of_layers(given["layers"]))
# run_step(step, [(0, 2)])
# print(step.replay(), given["budget_bytes"])
# ```
#
# A case also has `least_bytes`, the smallest peak of any plan: no budget is below it. `place` neither gets nor needs
# it.


# %% given
def tape_of_layers(layers):
    """The tape of layers that are given as dicts, as in `place`."""
    names = ("name", "activation_bytes", "output_bytes", "forward_s", "backward_s")
    return Tape(
        tuple(TapeLayer(**{name: layer[name] for name in names}) for layer in layers)
    )


# %% solve="place_checkpoints"
def run_step(step, stretches):
    """A whole step that runs the stretches again and keeps all other layers."""
    ### BEGIN SOLUTION
    ends = {i: stretch for stretch in stretches for i in range(*stretch)}
    count = len(step.tape.layers)
    for i in range(count):
        step.forward(i, keep=i not in ends)
        if i - 1 in ends and ends[i - 1][1] != i:
            step.drop(i - 1)
    for i in reversed(range(count)):
        if i in ends and ends[i][1] == i + 1:
            for j in range(*ends[i]):
                step.recompute(j)
        step.backward(i)
    ### END SOLUTION


def place(layers, budget_bytes):
    """The stretches to run again, so that the step fits and takes the least time."""
    ### BEGIN SOLUTION
    fitting = []

    def go_on(i, held, again_s, stretches):
        if i == len(layers):
            fitting.append((again_s, stretches))
            return
        if held + layers[i]["activation_bytes"] <= budget_bytes:
            go_on(i + 1, held + layers[i]["activation_bytes"], again_s, stretches)
        whole, longer_s = held, again_s
        for stop, layer in enumerate(layers[i:], i + 1):
            whole, longer_s = (
                whole + layer["activation_bytes"],
                longer_s + layer["forward_s"],
            )
            if whole > budget_bytes or layer["once"]:
                return
            go_on(stop, held + layer["output_bytes"], longer_s, [*stretches, (i, stop)])

    go_on(0, 0, 0.0, [])
    return min(fitting)[1]
    ### END SOLUTION


# %% check="place_checkpoints"
check("place_checkpoints")

# %% [markdown]
# Here are six layers of a network that gets narrower: the first ones save the most, and the last ones take the longest.

# %%
saved_mb, handed_on_mb = (24, 18, 12, 8, 6, 4), (4, 3, 2, 2, 1, 1)
uneven = [
    {
        "name": f"layer{i}",
        "activation_bytes": saved_mb[i] * 10**6,
        "output_bytes": handed_on_mb[i] * 10**6,
        "forward_s": (i + 1) * 0.5e-3,
        "backward_s": (i + 1) * 1e-3,
        "once": False,
    }
    for i in range(6)
]

# %%
with requires_solution("place_checkpoints"):
    for budget_mb in (72, 54, 36, 25):
        step = VirtualTape(tape_of_layers(uneven))
        run_step(step, place(uneven, budget_mb * 10**6))
        print(f"a budget of {budget_mb} MB: {step.replay()}")
    figure, axes = style.subplots(figsize=(8, 3))
    axes = step.replay().plot(axes, title="A third of the memory")

# %% [markdown]
# The first bytes are cheap to save, and the last ones are expensive: a budget that is 18 MB smaller costs 0.5 ms, the
# next 18 MB cost 2.5 ms, and another 11 MB cost 2 ms. The best stretches save many bytes for few milliseconds, which is
# why stretches with equal numbers of layers are rarely best.

# %% [markdown]
# ## 10. Practice: the same training?
#
# In section 2, a window of micro-batches gave the gradient of one large batch. Whether the *training* is the same
# depends on what else is done. Write `what_differs(job)`, which returns the first of these words that applies when the
# batch is cut into equal micro-batches, each weighted correctly:
#
# | word | what differs from one large batch |
# |---|---|
# | `"update"` | the micro-batches' gradients are the same, but the weights or the learning rate end up different |
# | `"statistics"` | a layer normalises with different means and variances |
# | `"noise only"` | the random numbers are different; the gradient is the same on average |
# | `"no"` | only rounding |
#
# `job["layers"]` is a list of dicts, each with a `kind` and `training` (whether the layer is in training mode). The
# kinds are `"layer_norm"`, `"group_norm"`, `"batch_norm"`, `"sync_batch_norm"` (across ranks) and `"dropout"`. The
# batch norms also have `running_statistics` (whether they keep them), and dropout has `p`. `job["clip"]` (clipping the
# gradient's norm), `job["scaler"]` (`update()`) and `job["scheduler"]` (`step()`) say how often each is done: once per
# `"micro-batch"`, once per `"window"`, or never (`""`). `job["optimizer"]` is `"sgd"` or `"adam"`.


# %% solve="same_or_not"
def what_differs(job):
    """What differs between a large batch and its micro-batches: a word."""
    ### BEGIN SOLUTION
    if "micro-batch" in (job["clip"], job["scaler"], job["scheduler"]):
        return "update"
    measuring = [
        layer
        for layer in job["layers"]
        if layer["kind"] in ("batch_norm", "sync_batch_norm")
        and (layer["training"] or not layer["running_statistics"])
    ]
    dropping = [
        layer
        for layer in job["layers"]
        if layer["kind"] == "dropout" and layer["training"] and layer["p"]
    ]
    return "statistics" if measuring else "noise only" if dropping else "no"
    ### END SOLUTION


# %% check="same_or_not"
check("same_or_not")

# %% [markdown]
# ## 11. Practice: copy it, or run it again?
#
# Deck [002] has a third method besides keeping activations and running layers again: *offload* activations to the host
# and fetch them in time. A copy costs nothing as long as passes hide it. A layer with many bytes and little work should
# run again instead.
#
# `issue(step, plan)` runs a step on a `VirtualTape`. The plan has one word for each layer. `"keep"`: keep everything.
# `"recompute"`: keep only the layer's output (`forward(i, keep=False)`), and run the layer again right before its
# backward pass (`recompute(i)`). `"offload"`: *after* layer `i + 1` has read the output of layer `i`, call
# `offload(i)`, which starts the copy to the host; later, `fetch(i)` starts the copy back. `backward(i)` and
# `recompute(i)` read layer `i - 1` as well. Copies run during the passes that follow the call. Memory is freed when
# the copy to the host ends, and occupied when the copy back starts. So start each fetch one pass before the pass that
# reads the data: the earlier pass can then hide the copy.
#
# `do_step(step, budget_bytes)` runs the step with the fastest plan that fits. `step.tape` is its tape, from which you
# can make other steps to try plans on: `replay()` returns `peak_bytes` and `makespan_s`. There are five layers. Your
# step may take up to 5 % longer than the fastest plan that fits.


# %% solve="offload_or_recompute"
def issue(step, plan):
    """Runs the whole step, with one word of the plan for each layer."""
    ### BEGIN SOLUTION
    last = len(step.tape.layers) - 1
    for i in range(last + 1):
        step.forward(i, keep=plan[i] != "recompute")
        if i and plan[i - 1] == "offload":
            step.offload(i - 1)
    if plan[last - 1] == "offload":
        step.fetch(last - 1)
    for i in reversed(range(last + 1)):
        if i > 1 and plan[i - 2] == "offload":
            step.fetch(i - 2)
        if plan[i] == "recompute":
            step.recompute(i)
        step.backward(i)
    ### END SOLUTION


def do_step(step, budget_bytes):
    """Runs the step with the fastest plan that fits."""
    ### BEGIN SOLUTION
    from itertools import product

    fitting = []
    for plan in product(("keep", "recompute", "offload"), repeat=len(step.tape.layers)):
        if plan[-1] == "offload":
            continue
        trial = VirtualTape(step.tape)
        issue(trial, plan)
        found = trial.replay()
        if found.peak_bytes <= budget_bytes:
            fitting.append((found.makespan_s, plan))
    issue(step, min(fitting)[1])
    ### END SOLUTION


# %% check="offload_or_recompute"
check("offload_or_recompute")

# %% [markdown]
# ## 12. Practice: a table of your own
#
# Deck [002] ends with a table of methods and what each does to speed and memory. A table does not depend on your job,
# but the effects do: accumulation *gains* speed if each step waits for an all-reduce, and a checkpoint may make room
# for a batch that fills the device. Write `effect(method, job)` → `(speed, memory)`, each `"+"` (better), `"-"`
# (worse) or `"0"` (at most 1 % more or less). Better means fewer seconds per example, or fewer bytes, than the
# unchanged job. The costs are:
#
# * a forward pass of `b` examples takes `b * example_s`, but never less than `least_s`; a backward pass takes twice as
#   long as the forward pass; each step also takes `reduce_s` for the all-reduce and `update_s` for the optimizer;
# * a step of `batch` examples holds `fixed_bytes + batch * example_bytes`.
#
# | method | what it does |
# |---|---|
# | `"split"` | the batch runs in `parts` equal micro-batches, one after the other, in one step |
# | `"accumulate"` | `parts` micro-batches of `batch` examples each in one step |
# | `"checkpoint"` | `kept_share` of the activations (`example_bytes`) is kept, and every forward pass runs twice |
# | `"checkpoint and grow"` | the same, with as many whole examples as `memory_bytes` has room for |
# | `"offload"` | `kept_share` is kept; the rest is copied out in the forward pass, and back in the backward pass |
# | `"empty_cache"` | each step takes `flush_s` more |
#
# Copies run at `copy_byte_per_s` in each direction. When a copy runs during a pass, the longer of the two counts.
#
# Only `effect` is judged. The helper stub `cost(...)` above it is optional: leave it unchanged if you do not need it.


# %% solve="method_table"
def cost(job, size, *, parts=1, kept=1.0, runs=1, offloaded=0.0, extra_s=0.0):
    """(seconds per example, bytes held) of a step of `parts` micro-batches."""
    ### BEGIN SOLUTION
    forward_s = max(size * job["example_s"], job["least_s"])
    copy_s = offloaded * size * job["example_bytes"] / job["copy_byte_per_s"]
    passes_s = max(runs * forward_s, copy_s) + max(2 * forward_s, copy_s)
    step_s = parts * passes_s + job["reduce_s"] + job["update_s"] + extra_s
    held = job["fixed_bytes"] + kept * size * job["example_bytes"]
    return step_s / (parts * size), held
    ### END SOLUTION


def effect(method, job):
    """What a method does to speed and memory: two signs."""
    ### BEGIN SOLUTION
    size, parts, kept = job["batch"], job["parts"], job["kept_share"]
    room = (job["memory_bytes"] - job["fixed_bytes"]) // (kept * job["example_bytes"])
    after = {
        "split": lambda: cost(job, size / parts, parts=parts),
        "accumulate": lambda: cost(job, size, parts=parts),
        "checkpoint": lambda: cost(job, size, kept=kept, runs=2),
        "checkpoint and grow": lambda: cost(job, room, kept=kept, runs=2),
        "offload": lambda: cost(job, size, kept=kept, offloaded=1 - kept),
        "empty_cache": lambda: cost(job, size, extra_s=job["flush_s"]),
    }[method]()
    ratios = [new / old for new, old in zip(after, cost(job, size), strict=True)]
    return tuple("+" if r < 0.99 else "-" if r > 1.01 else "0" for r in ratios)
    ### END SOLUTION


# %% check="method_table"
check("method_table")

# %% [markdown]
# ## Where you are

# %%
Progress("lab06_memory")
