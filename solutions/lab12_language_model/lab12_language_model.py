# %% [markdown]
# # A language model, end to end
#
# Most performance work today is about transformers that generate text. Here you train a small one, in plain PyTorch, on
# text that the lab generates. It is built like the large models, only with smaller sizes. With it you find out what
# fills the memory of a step with a vocabulary of 128,000 words, store weights in four bits, and let a small model draft
# words for a large one.
#
# After this lab you can
#
# * say before you run a training step when it needs most memory, and which tensors fill it;
# * compute the loss of a large vocabulary in chunks, and find unnecessary work in a training step;
# * store a weight matrix in groups of four-bit integers, and compute with it;
# * speed up a model that generates text without changing its output, and say by how much;
# * in the practice, choose the scales of MXFP8 and NVFP4, count what fine-tuning with LoRA needs, multiply
#   activations with outliers in int8, and store keys and values in 8 bits.
#
# **About 204 minutes (estimated)**, in two sittings: the first ends with section 4. The practice sections carry no
# points. They take another 113 minutes (estimated) and can be done in any order.
#
# | exercise | section | minutes |
# |---|---|---|
# | `where_the_peak_is` | 2 | 40 |
# | `chunked_loss` | 3 | 40 |
# | `mend_the_step` | 4 | 37 |
# | `group_int4` | 5 | 30 |
# | `speculate` | 6 | 31 |
# | `step_report` | 7 | 26 |
#
# | practice | minutes |
# |---|---|
# | `block_scales` | 30 |
# | `lora` | 20 |
# | `smooth_outliers` | 25 |
# | `kv_int8` | 38 |
#
# *Write your prediction down* before you run the next cell. Lecture slides are quoted by deck: [000] optimizing
# training pipelines, [001] course introduction, [002] software perspective. `hint("group_int4")` gives the hints of an
# exercise, one at a time. A failing check shows the first case that is wrong, and `case("group_int4")` returns the
# inputs of that case as Python values.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.predictions import predict, reveal_prediction
    from edl_labs.ui.requires_solution import requires_solution
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
training_steps = 200

# %% given
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from edl_labs.device import torch_threads

# %% [markdown]
# ## 1. A model and its text
#
# The vocabulary has 1,024 words. Each word is followed by one of four words, with the probabilities 0.55, 0.25, 0.15
# and 0.05; the four words are drawn once, at the start. So even a perfect model cannot know the next word: its loss per
# word is the entropy of these four probabilities. A model that only knows how often each word occurs has a far larger
# loss.

# %% given
words, width, layers, heads, tokens = 1024, 128, 4, 4, 64


def made_up_text(sentences, length, seed):
    """Sentences of word numbers: each word is followed by one of four."""
    drawn = torch.Generator().manual_seed(seed)
    follows = torch.randint(words, (words, 4), generator=drawn)
    chances = torch.tensor([0.55, 0.25, 0.15, 0.05])
    text = [torch.randint(words, (sentences,), generator=drawn)]
    for _ in range(length - 1):
        which = torch.multinomial(chances, sentences, True, generator=drawn)
        text.append(follows[text[-1], which])
    return torch.stack(text, 1)


# %% [markdown]
# The model consists of an embedding, four layers, each with attention and a small network, and a *head*, which turns
# the last layer's output into one number for each word, the *logits*. Large models differ in details (where the norms
# are, how positions are encoded), but not in the outline.


# %%
def attended(qkv):
    """For each word, a mix of its value and those of earlier words, head by head."""
    q, k, v = qkv.unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(1, 2).flatten(2)


# %%
class Layer(nn.Module):
    """Attention, then a network for each word; both are added to their input."""

    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.out(attended(self.qkv(self.norm_1(x))))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


# %%
class LanguageModel(nn.Module):
    """Logits of the next word, for each word of a batch of sentences."""

    def __init__(self):
        super().__init__()
        self.embedding, self.position = (
            nn.Embedding(words, width),
            nn.Embedding(tokens, width),
        )
        self.layers = nn.Sequential(*[Layer() for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, text):
        x = self.embedding(text) + self.position.weight[: text.shape[1]]
        return self.head(self.norm(self.layers(x)))


# %% [markdown]
# The loss of a word is −log of the probability that the model assigned to it. **Predict:** how large is the average
# loss of a model that has learned everything there is to learn? And that of a model that assigns the same probability
# to all 1,024 words? The training after the boxes takes half a minute.

# %%
predict("learned", "A model that has learned everything has a loss of", unit="nats")
predict("uniform", "With equal probabilities for all words, the loss is", unit="nats")

# %%
with reveal_prediction("learned", "uniform") as truth:
    chances = np.array([0.55, 0.25, 0.15, 0.05])
    truth(
        learned=float(-(chances * np.log(chances)).sum()), uniform=float(np.log(words))
    )


# %%
def train(model, steps):
    """Losses of training steps on made-up text, 16 sentences each."""
    text = made_up_text(4000, tokens + 1, seed=7)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 3e-3), []
    for step in range(steps):
        batch = text[16 * step % 3900 :][:16]
        logits = model(batch[:, :-1]).flatten(0, 1)
        loss = F.cross_entropy(logits, batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
torch.manual_seed(7)
model = LanguageModel()
with torch_threads(1):  # its products are too small to divide among cores
    losses = train(model, training_steps)
print(f"loss of step 1: {losses[0]:.2f}, of step {len(losses)}: {losses[-1]:.2f}")

# %% [markdown]
# The loss has fallen most of the way from that of equal probabilities to that of a model that has learned everything.
# The rest of the lab is about the cost of such a step in a large model.
#
# ## 2. Where the peak is
#
# Llama 3 has a vocabulary of 128,256 words. **Predict:** a step processes 8 sentences of 4,096 words. How many bytes
# does one copy of its logits take in bf16?

# %%
predict("logits", "One copy of the logits takes", unit="GB")

# %%
with reveal_prediction("logits") as truth:
    truth(logits=8 * 4096 * 128_256 * 2 / 1e9)

# %% [markdown]
# But there is more than one copy. The loss is computed in fp32, because a sum of 128,256 exponentials loses too much
# precision in bf16:
#
# ```python
# def loss_of(model, text, following):
#     logits = model(text).flatten(0, 1)
#     return F.cross_entropy(logits.float(), following.flatten())
# ```
#
# `cross_entropy` is a `log_softmax`, which keeps its output for the backward pass, followed by the selection of one
# column. When the backward pass begins, three tensors with the shape of the logits are in memory at once, each in fp32:
# this output, the gradient with respect to it, and the gradient with respect to the logits. The logits themselves and
# their fp32 copy have already been freed, because nothing in the backward pass needs them.
#
# These parts of a step take memory. A step has batch · tokens positions; `item` is the number of bytes per weight (2
# for bf16, 4 for fp32):
#
# | part | bytes |
# |---|---|
# | `"states"` | `item` + 8 for each parameter, and 4 more with bf16 weights |
# | `"gradients"` | `item` for each parameter of a layer whose backward pass is finished |
# | `"activations"` | 16·width·`item` for each layer and position |
# | `"logits"` | 12 for each word of the vocabulary and position |
#
# The states are the weights, AdamW's two moments in fp32 and, with bf16 weights, a copy of the weights in fp32. The
# model has 12·layers·width² + 2·vocabulary·width parameters: those of the layers, of the embedding and of the head. A
# *checkpointed* layer keeps only its input, width·`item` bytes for each position, and recomputes the rest in its
# backward pass. During that pass, 16·width·`item` bytes for each position are in memory in addition to the input.
#
# Memory can reach its peak at one of four moments. In addition to the states, memory then contains
#
# * at `"loss"`, when the backward pass begins: the three tensors of the logits, and everything that the layers keep,
#   but no gradients yet;
# * at `"last layer"`, when the backward pass of this layer begins: everything that the layers keep, what the last layer
#   recomputes if it is checkpointed, and the gradient of the head;
# * at `"first layer"`, when the backward pass of this layer begins: what this layer keeps, what it recomputes if it is
#   checkpointed, and the gradients of the head and of all later layers;
# * at `"optimizer"`, when the backward pass is over: all gradients.
#
# Norms, biases, positions and everything between the last layer and the head are small; leave them out.
#
# Write `where_the_peak_is(step)` → (moment, part, bytes): the moment with the most bytes, its largest part, and the
# bytes of all parts at that moment. `step` is a dict with `batch`, `tokens`, `width`, `layers` (2 or more),
# `vocabulary`, `itemsize` (2 or 4) and `checkpointed` (True or False). There are no ties.


# %% solve="where_the_peak_is"
def where_the_peak_is(step):
    """(moment, largest part, bytes of all parts) where a step needs most memory."""
    ### BEGIN SOLUTION
    item, width, layers = step["itemsize"], step["width"], step["layers"]
    positions, table = step["batch"] * step["tokens"], step["vocabulary"] * width
    parameters = 12 * layers * width**2 + 2 * table
    states = parameters * (item + 8 + (4 if item == 2 else 0))
    whole = 16 * width * item * positions
    kept = width * item * positions if step["checkpointed"] else whole
    again = whole if step["checkpointed"] else 0
    behind_first = table + 12 * (layers - 1) * width**2
    # activations, gradients and logits of each moment
    rows = {
        "loss": (layers * kept, 0, 12 * positions * step["vocabulary"]),
        "last layer": (layers * kept + again, item * table, 0),
        "first layer": (kept + again, item * behind_first, 0),
        "optimizer": (0, item * parameters, 0),
    }
    moment = max(rows, key=lambda name: sum(rows[name]))
    named = dict(zip(("activations", "gradients", "logits"), rows[moment], strict=True))
    named["states"] = states
    return moment, max(named, key=named.get), sum(named.values())
    ### END SOLUTION


# %% check="where_the_peak_is"
check("where_the_peak_is")

# %% [markdown]
# The next cells apply your function to a model of 32 checkpointed layers of width 4,096, on 8 sentences of 4,096 words.
# What fills the peak as the vocabulary grows?

# %%
from edl_labs.plots.style import subplots
from edl_labs.units import byte_count

shape = {"batch": 8, "tokens": 4096, "width": 4096, "layers": 32}
shape |= {"itemsize": 2, "checkpointed": True}
vocabularies = (8_192, 32_000, 128_256, 256_000)
with requires_solution("where_the_peak_is"):
    for size in vocabularies:
        moment, part, peak = where_the_peak_is({**shape, "vocabulary": size})
        print(f"{size:7,} words: {byte_count(peak)} at {moment!r}, mostly {part}")

# %%
with requires_solution("where_the_peak_is"):
    figure, axes = subplots()
    for size in vocabularies:
        moment, _, peak = where_the_peak_is({**shape, "vocabulary": size})
        logits = 12 * 8 * 4096 * size * (moment == "loss")
        rest = (peak - logits) / 1e9
        names = ("all else", "logits") if size == vocabularies[0] else ("", "")
        axes.bar(f"{size:,}", rest, label=names[0], color="C0")
        axes.bar(f"{size:,}", logits / 1e9, bottom=rest, label=names[1], color="C1")
    axes.set(xlabel="words", ylabel="GB at the peak (modelled)")
    _ = axes.legend()

# %% [markdown]
# The states are the largest part in each case, but the logits grow. With 32,000 words or more, they move the peak to
# the loss: the last matrix of the model, not the layers, then determines how much memory the step needs.
#
# ## 3. The loss in chunks
#
# The loss of a position needs only the logits of this position. So you can compute the head and the loss in *chunks* of
# a few rows. For each chunk, compute its logits, its share of the loss and, while the probabilities are in memory, its
# share of the gradients of the hidden states and of the head's weight. Then free the chunk's tensors. **Predict:** with
# 128,256 words, fp32 logits and 1,024 rows per chunk, how many bytes does one chunk's tensor of logits take?

# %%
predict("chunk", "The logits of one chunk take", unit="GB")

# %%
with reveal_prediction("chunk") as truth:
    truth(chunk=1024 * 128_256 * 4 / 1e9)

# %% [markdown]
# Autograd computes gradients in the backward pass; to compute them earlier, write your own `autograd.Function`.
# `forward` may compute anything and keep tensors with `ctx.save_for_backward`. `backward` receives the gradient with
# respect to the result. It returns one gradient for each argument of `forward`, or `None` for an argument that has
# none. Here the gradient of x² is computed before it is needed:


# %%
class Square(torch.autograd.Function):
    """The sum of x², with a gradient that forward has computed."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(2 * x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


# %%
x = torch.tensor([1.0, 3.0], requires_grad=True)
(5 * Square.apply(x)).backward()
print(x.grad)

# %% [markdown]
# Write `chunked_loss(hidden, weight, targets, rows, smoothing, mean)` → the loss, a tensor without dimensions. `hidden`
# is positions × width, `weight` is words × width, and the logits are `hidden @ weight.T`; some of them are above 1,000.
# If p is the softmax of a row of logits, the loss of that position is
#
# (1 − smoothing) · (−log p of its target) + smoothing · (mean of −log p over all words).
#
# A position whose target is −100 counts neither in the loss nor in a gradient. The result is the sum over the
# positions that count, divided by their number if `mean` is true. The last chunk may be shorter than `rows`; at least
# one target counts. After `loss.backward()`, `hidden` and `weight` must have the right gradients, even if the loss
# was multiplied by a number before.
#
# The gradient of a position's loss with respect to its logits is
# p − (1 − smoothing) · (1 at the target, else 0) − smoothing / words.
#
# No tensor may have as many elements as there are positions times words. Besides both gradients, you may keep only
# tensors of the current chunk and one number for each position; one temporary tensor with the shape of a gradient is
# allowed, and `backward` may create a new copy of each gradient. A function that computes the logits a second time in
# the backward pass earns 3 of the 5 points. The check does not use a clock: it records which operators your function
# runs, replays them on different values, and counts the memory and the matrix products. So no operator may depend on a
# value that the host has read (`.item()`). (PyTorch has `F.linear_cross_entropy`, which does not support smoothing in
# chunks; the check does not accept it.)


# %% solve="chunked_loss"
class ChunkedLoss(torch.autograd.Function):
    """The loss in chunks of rows; the forward pass computes both gradients."""

    @staticmethod
    def forward(ctx, hidden, weight, targets, rows, smoothing, mean):
        """The loss, without dimensions; keeps the gradients of hidden and weight."""
        ### BEGIN SOLUTION
        used = targets != -100
        count = used.sum() if mean else 1
        targets, words = targets.clamp(min=0)[:, None], len(weight)
        of_hidden, of_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        loss = hidden.new_zeros(())
        for at in range(0, len(hidden), rows):
            chunk = slice(at, at + rows)
            share = used[chunk].to(hidden.dtype)[:, None] / count
            logs = (hidden[chunk] @ weight.T).log_softmax(1)
            picked = logs.gather(1, targets[chunk])
            each = (1 - smoothing) * picked + smoothing * logs.mean(1, keepdim=True)
            loss -= (share * each).sum()
            grad = logs.exp_().sub_(smoothing / words)
            grad.scatter_add_(1, targets[chunk], torch.full_like(picked, smoothing - 1))
            grad *= share
            of_hidden[chunk] = grad @ weight
            of_weight += grad.T @ hidden[chunk]
        ctx.save_for_backward(of_hidden, of_weight)
        return loss
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        """Gradients of forward's six arguments, for a loss whose gradient is grad."""
        ### BEGIN SOLUTION
        of_hidden, of_weight = ctx.saved_tensors
        return grad * of_hidden, grad * of_weight, None, None, None, None
        ### END SOLUTION


def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
    """The loss of the head `weight` on `hidden`, `rows` positions at a time."""
    return ChunkedLoss.apply(hidden, weight, targets, rows, smoothing, mean)


# %% check="chunked_loss"
check("chunked_loss")

# %% [markdown]
# The next cell uses the same recorder: how much memory does the loss need if it is computed in one piece, and how
# much in chunks of different sizes?

# %%
from edl_labs.graph.tensor_programs import play, record


def peak_bytes(loss_of):
    """Live bytes at the peak of a loss and its backward pass, without the inputs."""

    def step(hidden, weight, targets):
        loss_of(hidden.requires_grad_(), weight.requires_grad_(), targets).backward()
        return {"hidden": hidden.grad, "weight": weight.grad}

    found = {"hidden": torch.randn(512, 16), "weight": torch.randn(2048, 16)}
    found["targets"] = torch.arange(512)
    return play(record(step, found), found).peak_live_bytes


# %%
with requires_solution("chunked_loss"):
    whole = peak_bytes(lambda h, w, t: F.cross_entropy(h @ w.T, t))
    print(f"all 512 positions at once: {byte_count(whole)}")
    for rows in (256, 64, 16):
        peak = peak_bytes(lambda h, w, t, r=rows: chunked_loss(h, w, t, r, 0.0, True))
        print(f"{rows:3} rows per chunk: {byte_count(peak)}")

# %% [markdown]
# ## 4. A step without waste
#
# On a GPU, a small step spends more time waiting than computing. It waits for the host to start each kernel. And
# whenever the host reads a value, the read waits for everything that was issued before it ([000]). Below is a training
# loop as it is often found in projects that have grown. It trains a small model of blocks whose attention is a function
# that you can replace:


# %% given
class SmallBlock(nn.Module):
    """One layer; `attend` gets queries, keys and values side by side."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, attend):
        x = x + self.out(attend(self.qkv(self.norm(x))))
        return x + self.down(F.gelu(self.up(x)))


# %% given
class SmallModel(nn.Module):
    """Embedding, blocks, head, and a table of positions in fp64, as from numpy."""

    def __init__(self, words, width, blocks, tokens):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.register_buffer("positions", torch.rand(tokens, width).double())
        self.blocks = nn.ModuleList([SmallBlock(width) for _ in range(blocks)])
        self.head = nn.Linear(width, words, bias=False)


# %% given
def slow_attend(qkv):
    """Four heads of causal attention, with scores for all pairs of positions."""
    q, k, v = qkv.unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    mask = torch.ones(q.shape[2], q.shape[2]).tril().bool()
    mixed = scores.masked_fill(~mask, -torch.inf).softmax(3) @ v
    return mixed.transpose(1, 2).flatten(2)


# %% given
class SlowTraining:
    """One step per text; keeps all losses, and the accuracy of every third step."""

    def __init__(self, model):
        self.model, self.losses, self.accuracies = model, [], []
        self.optimizer = torch.optim.AdamW(model.parameters(), 0.01, foreach=False)

    def logits(self, text):
        """Logits of the words that follow, one row per position."""
        x = self.model.embedding(text)
        for block in self.model.blocks:
            x = block(x + self.model.positions.to(x.dtype), slow_attend)
        return self.model.head(x).flatten(0, 1)

    def step(self, text):
        """One step on sentences of word numbers."""
        logits, following = self.logits(text[:, :-1]), text[:, 1:].flatten()
        loss = F.cross_entropy(logits, following)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        accuracy = (logits.argmax(1) == following).float().mean().item()
        if len(self.losses) % 3 == 0:
            self.accuracies.append(accuracy)
        self.losses.append(loss.item())


# %% [markdown]
# **Predict:** a model of two blocks has 22 parameter tensors (weights and biases). AdamW's update of one tensor takes
# nine small operators. How many kernels does an update start if it processes one tensor at a time? And how many with
# a *fused* optimizer, which has one operator for all of them?

# %%
predict("one_by_one", "One tensor at a time, an update starts", unit="kernels")
predict("fused", "A fused optimizer starts", unit="kernels")

# %%
with reveal_prediction("one_by_one", "fused") as truth:
    truth(one_by_one=22 * 9, fused=1)

# %% [markdown]
# Write a class `Training` that is used like `SlowTraining` and reaches the same weights (up to the order of sums), but
# avoids five costs:
#
# * **host reads**: `losses` and `accuracies` are lists of tensors without dimensions (detached or not), and the host
#   does not read any value;
# * **the optimizer** does not update each parameter separately. It is still AdamW with a learning rate of 0.01. (On a
#   CPU, PyTorch updates parameters one by one unless you pass `foreach=True` or `fused=True`.)
# * **the mask**: no tensor has a number for each pair of positions;
# * **conversions**: a step that does not keep an accuracy does not convert any tensor to another dtype;
# * **the metric**: the accuracy is computed only in the steps that keep it: the first one, and every third step after
#   it. Every step computes only what is needed for its loss, for the weights and, if the step keeps it, for the
#   accuracy.
#
# Each cost that you avoid is worth a point, once losses, accuracies and weights are right. `step` must not depend on
# values: the check records it on one set of weights and texts, and judges it on another.


# %% solve="mend_the_step"
class Training:
    """Trains as SlowTraining does, with losses and accuracies as tensors."""

    def __init__(self, model):
        ### BEGIN SOLUTION
        self.model, self.losses, self.accuracies = model, [], []
        self.optimizer = torch.optim.AdamW(model.parameters(), 0.01, fused=True)
        self.positions = model.positions.to(model.head.weight.dtype)
        ### END SOLUTION

    def attend(self, qkv):
        """Four heads of causal attention."""
        ### BEGIN SOLUTION
        q, k, v = qkv.unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).flatten(2)
        ### END SOLUTION

    def step(self, text):
        """One step on sentences of word numbers."""
        ### BEGIN SOLUTION
        x, following = self.model.embedding(text[:, :-1]), text[:, 1:].flatten()
        for block in self.model.blocks:
            x = block(x + self.positions, self.attend)
        logits = self.model.head(x).flatten(0, 1)
        loss = F.cross_entropy(logits, following)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        if len(self.losses) % 3 == 0:
            self.accuracies.append((logits.argmax(1) == following).float().mean())
        self.losses.append(loss.detach())
        ### END SOLUTION


# %% check="mend_the_step"
check("mend_the_step")

# %% [markdown]
# How much does this gain on a GPU? The next cells model it: the tensors are so small that each kernel takes the 5 µs
# that the host needs to start it, and each read by the host takes another 20 µs.

# %%
from edl_labs.graph.tensor_programs import Recorder


def counted_step(make_training):
    """The costs of the second of two steps, from a recording that is replayed."""
    small = SmallModel(words, 32, 2, 31)
    texts = {"first": made_up_text(4, 32, seed=1), "second": made_up_text(4, 32, 2)}
    inputs = {name: one.detach() for name, one in small.named_parameters()} | texts
    recorder = Recorder(inputs)
    with recorder.recording():
        training = make_training(small)
        training.step(texts["first"])
        recorder.section("second")
        training.step(texts["second"])
    return play(recorder.text({}), inputs).sections[1]


# %%
with requires_solution("mend_the_step"):
    for make_training in (SlowTraining, Training):
        step = counted_step(make_training)
        kernels, reads = step.operators.total(), step.host_reads
        ms = kernels * 5e-3 + reads * 20e-3
        print(
            f"{make_training.__name__}: {kernels} kernels, {reads} host reads", end=", "
        )
        print(f"{byte_count(step.moved_bytes)}, modelled {ms:.2f} ms")

# %% [markdown]
# ## 5. Weights in four bits
#
# A model that generates text reads every weight once for each word ([002]). **Predict:** a model has 8 billion weights,
# and an H100 reads 3.35 TB/s. At most how many words per second can it generate, one sentence at a time, in bf16? And
# how many with weights of four bits?

# %%
predict("bf16_words", "In bf16 it generates at most", unit="words/s")
predict("int4_words", "With four bits per weight it generates at most", unit="words/s")

# %%
with reveal_prediction("bf16_words", "int4_words") as truth:
    truth(bf16_words=3.35e12 / (8e9 * 2), int4_words=3.35e12 / (8e9 * 0.5))

# %% [markdown]
# Four bits can store only sixteen integers. A single scale for a whole matrix would have to fit its largest weight.
# Therefore each *group* of adjacent weights in a row has its own scale and zero point. The product converts the
# integers back as it reads them: only the weights are stored in four bits, and sums are as accurate as before.
#
# Write four functions for a weight of rows × columns, in fp32:
#
# * `quantize(weight, group)` → (packed, scale, zero). A group consists of `group` adjacent weights in a row (the last
#   group may be shorter). In each group, `lowest` is the smallest of 0 and the values, and `highest` is the largest of
#   0 and the values, so that one of the integers represents exactly 0. `scale` is (highest − lowest) / 15, rounded to
#   fp16; use the rounded scale in all later steps. `zero` is round(−lowest / scale). Every group has a value that is
#   not 0; no rounding is a tie, and no scale becomes 0 in fp16. A weight's integer is round(w / scale) + zero, limited
#   to the range 0 to 15. `packed` has two of these integers in each byte: column 0 in the low four bits, column 1 in
#   the high four bits, and so on; with an odd number of columns, the last high bits are 0. `packed` and `zero` are
#   torch.uint8, `scale` is torch.float16; `scale` and `zero` have one column per group.
# * `dequantize(packed, scale, zero, columns, group)` → the weights in fp32, (integer − zero) · scale.
# * `product(x, packed, scale, zero, columns, group)` → x times the transposed weights, in fp32. Its shape is rows of x
#   by rows of the weight.
# * `bytes_per_weight(group, scale_bits, zero_bits)` → the bytes that a weight takes, including its share of the scale
#   and the zero point of its group. All groups are full.


# %% solve="group_int4"
def quantize(weight, group):
    """(packed, scale, zero) of a weight, in groups of adjacent weights of a row."""
    ### BEGIN SOLUTION
    rows, columns = weight.shape
    groups = F.pad(weight, (0, -columns % group)).unflatten(1, (-1, group))
    # The padding is 0, and 0 counts in every group anyway.
    lowest, highest = groups.amin(2), groups.amax(2)
    lowest, highest = lowest.clamp(max=0), highest.clamp(min=0)
    scale = ((highest - lowest) / 15).half()
    zero = (-lowest / scale.float()).round()
    integers = (groups / scale.float()[:, :, None]).round() + zero[:, :, None]
    integers = integers.clamp(0, 15).flatten(1)[:, :columns]
    pairs = F.pad(integers, (0, columns % 2)).to(torch.uint8).unflatten(1, (-1, 2))
    return pairs[:, :, 0] | pairs[:, :, 1] << 4, scale, zero.to(torch.uint8)
    ### END SOLUTION


def dequantize(packed, scale, zero, columns, group):
    """The weights in fp32, rows × columns."""
    ### BEGIN SOLUTION
    pairs = torch.stack([packed & 15, packed >> 4], 2)
    integers = pairs.flatten(1)[:, :columns].float()
    of = torch.arange(columns) // group
    return (integers - zero.float()[:, of]) * scale.float()[:, of]
    ### END SOLUTION


def product(x, packed, scale, zero, columns, group):
    """x @ weight.T, in fp32."""
    ### BEGIN SOLUTION
    return x @ dequantize(packed, scale, zero, columns, group).T
    ### END SOLUTION


def bytes_per_weight(group, scale_bits, zero_bits):
    """Bytes per weight, including its share of what its group stores."""
    ### BEGIN SOLUTION
    return (4 + (scale_bits + zero_bits) / group) / 8
    ### END SOLUTION


# %% check="group_int4"
check("group_int4")

# %% [markdown]
# How does this change the model that you trained? The next cells compute its loss with all weights of its layers in
# four bits, for two group sizes:

# %%
text = made_up_text(4000, tokens + 1, seed=7)[-64:]  # train stops before these


def loss_on_new_text(model):
    """The mean loss on sentences that training did not see."""
    with torch.no_grad():
        return F.cross_entropy(
            model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()
        ).item()


# %%
from copy import deepcopy

print(f"fp32 weights: loss {loss_on_new_text(model):.3f}")
with requires_solution("group_int4"):
    for group in (16, 128):
        smaller = deepcopy(model)
        for linear in smaller.layers.modules():
            if isinstance(linear, nn.Linear):
                stored = quantize(linear.weight.detach(), group)
                linear.weight.data = dequantize(*stored, linear.in_features, group)
        size = bytes_per_weight(group, 16, 8)
        loss = loss_on_new_text(smaller)
        print(f"groups of {group}: loss {loss:.3f}, {size:.3f} bytes per weight")

# %% [markdown]
# This model is small and well trained: the loss changes only in the third digit, with either group size. Large models
# have a few weights that are much larger than all others; for them, the group size matters.
#
# ## 6. A small model drafts
#
# A model that generates one sentence is limited by memory: for each word it reads all weights but computes little. A
# pass over five positions takes hardly longer than a pass over one. So a small model *drafts* a few words, and the
# large model checks all of them in one pass ([001]). You keep the words that it accepts, and it adds one word of its
# own.
#
# What makes this exact is the rule for accepting words. `p` contains the large model's probabilities at a position, `q`
# those of the small model, and the drafted word was drawn from `q`. Accept the word with probability min(1, p/q). If
# you refuse it, draw a word from the *residual*: the part of `p` above `q`, divided by its sum. The resulting words
# then have exactly the probabilities `p`:
#
# q·min(1, p/q) = min(p, q), and the remaining part of p is max(p − q, 0).
#
# **Predict:** five words are drafted, and each is accepted with probability 0.8, independently of the others. How many
# words does a pass of the large model produce on average? And how many times as fast is text generation if drafting one
# word takes a tenth of the time of a large pass?

# %%
predict("tokens_a_pass", "On average, a pass produces", unit="words")
predict("speed_up", "That is", unit="times as fast")

# %%
with reveal_prediction("tokens_a_pass", "speed_up") as truth:
    a_pass = (1 - 0.8**6) / (1 - 0.8)
    truth(tokens_a_pass=a_pass, speed_up=a_pass / (1 + 0.1 * 5))

# %% [markdown]
# Write four functions. `p` and `q` are numpy arrays with one probability for each word, all above 0.
#
# * `accept_probability(p, q, token)` → the probability that the drafted `token` is accepted.
# * `residual(p, q)` → the probabilities from which a word is drawn after a refusal; p and q are not equal.
# * `next_tokens(drafted, large, small, uniforms)` → the words that a pass produces, as a list. `drafted` is a list of k
#   words, `small` contains the k distributions from which they were drawn, and `large` the k + 1 distributions of the
#   large model. Drafted word i is accepted if `uniforms[i]` is below its probability of acceptance. The pass ends at
#   the first refusal, or when all k words are accepted. In both cases one more word is drawn with `uniforms[k]`: from
#   the residual at the refused position, or from the last distribution of `large`. Drawing with the number u returns
#   the first word at which the sum of the probabilities so far is above u: `(np.cumsum(probabilities) > u).argmax()`.
# * `best_length(acceptance, cost, most)` → the number of drafted words, from 0 to `most`, with which text generation
#   is fastest: it produces the most words per unit of time, on average. Each word is accepted with probability
#   `acceptance` (below 1), drafting one word takes the time of `cost` large passes, and a large pass takes the same
#   time for any number of words. No two lengths are equally fast.


# %% solve="speculate"
def accept_probability(p, q, token):
    """The probability that a drafted token is accepted."""
    ### BEGIN SOLUTION
    return min(1.0, p[token] / q[token])
    ### END SOLUTION


def residual(p, q):
    """The probabilities from which a token is drawn after a refusal."""
    ### BEGIN SOLUTION
    above = np.maximum(p - q, 0)
    return above / above.sum()
    ### END SOLUTION


def next_tokens(drafted, large, small, uniforms):
    """The tokens that one pass of the large model produces."""
    ### BEGIN SOLUTION
    last = large[len(drafted)]
    accepted = list(drafted)
    for i, token in enumerate(drafted):
        if uniforms[i] >= accept_probability(large[i], small[i], token):
            accepted, last = drafted[:i], residual(large[i], small[i])
            break
    return [*accepted, int((np.cumsum(last) > uniforms[len(drafted)]).argmax())]
    ### END SOLUTION


def best_length(acceptance, cost, most):
    """The number of drafted tokens, 0 to `most`, that is fastest."""

    ### BEGIN SOLUTION
    def speed(length):
        tokens_a_pass = (1 - acceptance ** (length + 1)) / (1 - acceptance)
        return tokens_a_pass / (1 + cost * length)

    return max(range(most + 1), key=speed)
    ### END SOLUTION


# %% check="speculate"
check("speculate")

# %%
figure, axes = subplots()
lengths = np.arange(0, 13)
for acceptance in (0.6, 0.8, 0.9):
    speed_ups = (
        (1 - acceptance ** (lengths + 1)) / (1 - acceptance) / (1 + 0.1 * lengths)
    )
    axes.plot(lengths, speed_ups, marker="o", label=f"acceptance {acceptance}")
axes.set(xlabel="drafted words per pass", ylabel="times as fast (modelled, cost 0.1)")
_ = axes.legend()

# %% [markdown]
# ## 7. Your report
#
# Three techniques in this lab make a model cheaper: a loss in chunks, weights in four bits, and drafted words. Each of
# them helps only in some situations.

# %% [markdown] explain="step_report"
# **Explain (read by your instructor).** A team trains a model of width 4,096 with 32 layers and 128,256 words on one
# GPU with 192 GB and serves it to one user at a time. For each of the three techniques, state its limit: which quantity
# it saves, how much it can save at most, with the figures of this lab, and where it saves nothing. Then say what
# changes when 64 users use the model at once, and what you would do first on eight GPUs. Write five to ten sentences.

# %% [markdown]
# ## Practice: blocks that share a scale
#
# GPUs since Blackwell multiply floats of 8 and 4 bits whose scales are part of the operand. In MXFP8, 32 adjacent
# elements of a row share one scale, a power of two that takes one byte. In NVFP4, 16 adjacent elements share one, a
# number in e4m3, and the whole tensor has another in fp32. **Predict:** how many bytes does a value take, including its
# share of the scales of its block?

# %%
predict("mxfp8_bytes", "A value in MXFP8 takes", unit="bytes")
predict("nvfp4_bytes", "A value in NVFP4 takes", unit="bytes")

# %%
with reveal_prediction("mxfp8_bytes", "nvfp4_bytes") as truth:
    truth(mxfp8_bytes=1 + 1 / 32, nvfp4_bytes=(4 + 8 / 16) / 8)

# %% [markdown]
# `amax` is the largest magnitude of a block. The largest numbers of e4m3 lie between 2⁸ and 448, so the MX standard
# sets the scale to 2 to the power ⌊log₂ amax⌋ − 8. After division by the scale, the block's largest value lies between
# 256 and 512, and values above 448 *saturate*: they become 448. Training libraries prefer the smallest power of two
# with which nothing saturates: amax / scale ≤ 448.
#
# Write four functions for a tensor `x` of rows × columns in fp32. A block consists of adjacent elements of a row, and
# the last block of a row may be shorter.
#
# * `mx_exponents(x, saturating)` → for each block of 32, the exponent of its scale, as an integer tensor with a column
#   for each block. If `saturating` is true, use the standard's rule, otherwise the smallest exponent with which nothing
#   saturates. An exponent is at least −127, which is also the exponent of a block of zeros.
# * `mx_values(x, exponents)` → x rounded to MXFP8 with these exponents, in fp32: x / scale, saturated at ±448, rounded
#   by `.to(torch.float8_e4m3fn)`, times the scale. Old versions of torch turn values above 448 into NaN.
# * `nvfp4_scales(x)` → (tensor scale, block scales). The tensor scale is one number, the tensor's amax / (448 · 6): 6
#   is the largest number of e2m1, the format of the elements. The scale of a block of 16 is its amax / 6 / tensor
#   scale, at least 2⁻⁶, and rounded to e4m3. Return the block scales in fp32, with a column for each block.
# * `nvfp4_values(x, tensor_scale, block_scales)` → x rounded to NVFP4, in fp32. `e2m1` below rounds to the numbers of
#   the elements' format, and saturates at ±6.
#
# `edl_labs.numerics` implements both formats (MXFP8 with the standard's rule), so you can compare your functions with
# `MXFP8.quantize(x)` and `NVFP4.quantize(x)`.


# %% given
from edl_labs.numerics import E2M1FN


def e2m1(values):
    """The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives."""
    return E2M1FN.round(values, saturate=True)


# %% solve="block_scales"
def mx_exponents(x, saturating):
    """Exponents of the scales, with a column for each block of 32."""
    ### BEGIN SOLUTION
    blocks = F.pad(x, (0, -x.shape[1] % 32)).unflatten(1, (-1, 32))
    fraction, exponent = torch.frexp(blocks.abs().amax(2))  # 0.5 ≤ fraction < 1
    # 448 is 0.875 · 2⁹, and a value between 2⁸ and 2⁹ has the exponent 9 here.
    exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
    return exponent.where(fraction > 0, -127).clamp(min=-127)
    ### END SOLUTION


def mx_values(x, exponents):
    """x rounded to MXFP8 with scales of these exponents."""
    ### BEGIN SOLUTION
    of = torch.arange(x.shape[1]) // 32
    scale = 2.0 ** exponents.double()[:, of]
    codes = (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return (codes.double() * scale).float()
    ### END SOLUTION


def nvfp4_scales(x):
    """(scale of the tensor, scales of the blocks of 16)."""
    ### BEGIN SOLUTION
    blocks = F.pad(x, (0, -x.shape[1] % 16)).unflatten(1, (-1, 16))
    tensor_scale = x.abs().max() / (448 * 6)
    scales = blocks.abs().amax(2) / 6 / tensor_scale
    rounded = scales.clamp(min=2**-6).to(torch.float8_e4m3fn)
    return tensor_scale.item(), rounded.float()
    ### END SOLUTION


def nvfp4_values(x, tensor_scale, block_scales):
    """x rounded to NVFP4 with these scales."""
    ### BEGIN SOLUTION
    scale = tensor_scale * block_scales[:, torch.arange(x.shape[1]) // 16]
    return e2m1(x / scale) * scale
    ### END SOLUTION


# %% check="block_scales"
check("block_scales")

# %% [markdown]
# How much do these formats change the weights of your model? If the logarithm (base 2) of a block's largest value is
# spread evenly between two integers, that value is above 448 · scale in about one block in five: log₂(512 / 448) is
# 0.19. The other rule makes the steps of those blocks twice as large.

# %%
weight = model.layers[0].up.weight.detach()


def print_error(name, values):
    """The error of all weights together."""
    error = (values - weight).norm() / weight.norm()
    print(f"{name}: {error:.2%} of the weights' size")


# %%
with requires_solution("block_scales"):
    for name, saturates in (("saturating", True), ("nothing saturates", False)):
        exponents = mx_exponents(weight, saturates)
        print_error(f"MXFP8, {name}", mx_values(weight, exponents))
    print_error("NVFP4", nvfp4_values(weight, *nvfp4_scales(weight)))
with requires_solution("group_int4"):
    restored = dequantize(*quantize(weight, 16), weight.shape[1], 16)
    print_error("int4 in groups of 16", restored)

# %% [markdown]
# ## Practice: train only a few weights
#
# LoRA fine-tunes a model without changing its weights. For each frozen weight W of rows × columns, it trains two thin
# matrices, `down` (rank × columns) and `up` (rows × rank), and the layer computes
#
# y = x Wᵀ + (α / rank) · x downᵀ upᵀ.
#
# **Predict:** a model has 8 billion weights in bf16. Training all of them takes 16 bytes per weight: weight and
# gradient in bf16, a master copy and two moments in fp32. How many GB is that? And how many GB do the frozen model and
# adapters with 40 million weights take, at 16 bytes per adapter weight?

# %%
predict("all_trained", "Training all weights takes", unit="GB")
predict("adapters_trained", "Training the adapters takes", unit="GB")

# %%
with reveal_prediction("all_trained", "adapters_trained") as truth:
    truth(all_trained=8 * 16, adapters_trained=8 * 2 + 0.04 * 16)

# %% [markdown]
# Write four functions; `x` is positions × columns, in fp32 like the other tensors.
#
# * `adapted(x, weight, down, up, alpha)` → y.
# * `merged(weight, down, up, alpha)` → one weight of rows × columns with which a plain linear layer computes the same
#   y, so that the adapter costs nothing when the model is served. Do not modify the frozen weight: it is still needed.
# * `state_bytes(rows, columns, rank)` → the bytes of weights, gradients and optimizer for this layer in training, with
#   the numbers above.
# * `step_flop(positions, rows, columns, rank)` → the floating-point operations of the layer's matrix products in one
#   training step. The product of an a × b matrix with a b × c matrix takes 2·a·b·c operations. Count x Wᵀ, x downᵀ and
#   (x downᵀ) upᵀ. The backward pass computes the gradients of x, `down` and `up`, but not that of W.


# %% solve="lora"
def adapted(x, weight, down, up, alpha):
    """The layer's output with its adapter."""
    ### BEGIN SOLUTION
    return x @ weight.T + alpha / len(down) * (x @ down.T @ up.T)
    ### END SOLUTION


def merged(weight, down, up, alpha):
    """One weight that does the work of all three."""
    ### BEGIN SOLUTION
    return weight + alpha / len(down) * (up @ down)
    ### END SOLUTION


def state_bytes(rows, columns, rank):
    """Bytes of weights, gradients and optimizer in training."""
    ### BEGIN SOLUTION
    return 2 * rows * columns + 16 * rank * (rows + columns)
    ### END SOLUTION


def step_flop(positions, rows, columns, rank):
    """Operations of the matrix products, forward and backward."""
    ### BEGIN SOLUTION
    frozen = 2 * positions * rows * columns
    thin = 2 * positions * rank * (rows + columns)
    return 2 * frozen + 3 * thin
    ### END SOLUTION


# %% check="lora"
check("lora")

# %% [markdown]
# Compared with full fine-tuning, a training step of the layer with a small rank needs little more than two thirds of
# the operations, and little more than one eighth of the bytes for the states:

# %%
rows, columns, positions = 4096, 4096, 8192
with requires_solution("lora"):
    for rank in (8, 64, 512):
        flop = step_flop(positions, rows, columns, rank)
        share = flop / (6 * positions * rows * columns)
        size = state_bytes(rows, columns, rank) / (16 * rows * columns)
        print(f"rank {rank}: {share:.0%} of the operations, {size:.0%} of the states")

# %% [markdown]
# ## Practice: activations with outliers
#
# In W8A8, activations and weights are both int8, so that tensor cores multiply integers. Each token (a row of x) has
# its own scale, and so does each output channel (a row of the weight). But in large models, a few input channels are
# far larger than all others, for every token. Such an *outlier channel* sets the scale of every token, and only few
# integers are left for the other channels.
#
# SmoothQuant moves the difficulty to the weights. It divides channel j of the activations by s_j and multiplies column
# j of the weight by s_j, which does not change the product. The scale is
#
# s_j = max|X_j|^α / max|W_j|^(1 − α).
#
# **Predict:** a token's scale is its largest magnitude / 127. The largest activation of each channel is 1, except for
# one channel in which all activations are 60. The largest weight of each column is 1. How many different integers can
# occur in the other channels without smoothing? And how many with smoothing, at α = 0.5?

# %%
predict("rough_integers", "Without smoothing, the others can have", unit="integers")
predict("smooth_integers", "With α = 0.5, the others can have", unit="integers")

# %%
with reveal_prediction("rough_integers", "smooth_integers") as truth:
    truth(
        rough_integers=2 * round(127 / 60) + 1,
        smooth_integers=2 * round(127 / 60**0.5) + 1,
    )

# %% [markdown]
# Write four functions. Tensors are fp32 unless stated otherwise, and a weight is rows × columns, as in `nn.Linear`.
#
# * `smoothing_scales(x, weight, alpha)` → s_j for each column j. max|X_j| is taken over all rows of x, max|W_j| over
#   all rows of the weight. s_j is 1 where column j of x or of the weight is all zeros.
# * `int8_rows(table)` → (integers, scales). A row's scale is its largest magnitude / 127, but 1 for a row of zeros. An
#   integer is the value / scale, rounded to nearest; halves are rounded to the even integer, as in `torch.round`. So
#   the integers range from −127 to 127, and −128 stays unused. `integers` is torch.int8; `scales` has a number for each
#   row.
# * `w8a8_product(x, x_scales, weight, weight_scales)` → the product, rows of x by rows of the weight. `x` and `weight`
#   are torch.int8, with one scale for each row. Add up the products as 32-bit integers, then multiply the sums by both
#   scales.
# * `folded(norm_weight, norm_bias, weight, scales)` → (norm weight, norm bias, weight). A norm computes
#   normalized · norm_weight + norm_bias, and the linear layer `weight` follows it. Return the three tensors with which
#   the norm's output is already divided by the scales and the linear layer undoes the division, so that the division
#   costs nothing. Do not modify the arguments.


# %% solve="smooth_outliers"
def smoothing_scales(x, weight, alpha):
    """The scales by which the channels are divided."""
    ### BEGIN SOLUTION
    of_x, of_weight = x.abs().amax(0), weight.abs().amax(0)
    s = of_x**alpha / of_weight ** (1 - alpha)
    return s.where((of_x > 0) & (of_weight > 0), 1.0)
    ### END SOLUTION


def int8_rows(table):
    """(integers from −127 to 127, one scale for each row)."""
    ### BEGIN SOLUTION
    row_scales = table.abs().amax(1) / 127
    row_scales = row_scales.where(row_scales > 0, 1.0)
    return (table / row_scales[:, None]).round().to(torch.int8), row_scales
    ### END SOLUTION


def w8a8_product(x, x_scales, weight, weight_scales):
    """The product of two int8 tables, in fp32."""
    ### BEGIN SOLUTION
    sums = x.int() @ weight.int().T
    return sums * x_scales[:, None] * weight_scales
    ### END SOLUTION


def folded(norm_weight, norm_bias, weight, scales):
    """A norm and the layer after it, smoothed."""
    ### BEGIN SOLUTION
    return norm_weight / scales, norm_bias / scales, weight * scales
    ### END SOLUTION


# %% check="smooth_outliers"
check("smooth_outliers")

# %% [markdown]
# Your model is too small to have outliers, so the next cell plants one: it enlarges channel 7 of the first layer's
# input, for every token.


# %%
def planted(factor):
    """Input and weight of the first layer, with an outlier in channel 7."""
    sizes = torch.ones(width)
    sizes[7] = factor
    with torch.no_grad():
        entered = model.embedding(text[:, :-1]) + model.position.weight
        normed = model.layers[0].norm_1(entered).flatten(0, 1)
    return normed * sizes, model.layers[0].qkv.weight.detach()


def w8a8_error(inputs, qkv, s):
    """The error of the int8 product, relative to the exact one."""
    exact = inputs @ qkv.T
    made = w8a8_product(*int8_rows(inputs / s), *int8_rows(qkv * s))
    return ((made - exact).norm() / exact.norm()).item()


# %%
with requires_solution("smooth_outliers"):
    print(f"no outlier: error {w8a8_error(*planted(1), torch.ones(width)):.2%}")
    print(f"outlier: error {w8a8_error(*planted(60), torch.ones(width)):.2%}")
    for exponent in (0, 0.25, 0.5, 0.75, 1):
        s = smoothing_scales(*planted(60), exponent)
        print(f"α = {exponent}: error {w8a8_error(*planted(60), s):.2%}")

# %% [markdown]
# Neither extreme is best. With α = 1, all channels of x have the same largest magnitude, and the weights have the
# outliers; with α = 0 it is the other way round. The scales are computed before the model is served, from activations
# on sample text.
#
# There is a norm before `qkv` and before `up`, so folding costs nothing there. There is no norm before `out`, but the
# rows of `qkv` that compute the values can be divided, because attention mixes only values of the same channel. Before
# `down` there is GELU, which is not linear, so the division would be a separate operation. In models with SwiGLU, the
# projection that is multiplied by the gate can be divided.

# %% [markdown]
# ## Practice: a cache in 8 bits
#
# A model that generates text keeps the keys and values of all tokens so far; lab09b stores this cache in fp16. With
# long texts and many users, it takes more memory than the weights. Three ideas make it smaller:
#
# * several query heads share one head of keys and values (*grouped-query attention*, GQA);
# * keys and values are stored as int8;
# * each layer stores one short vector per token, the *latent*, from which the keys and values of all heads are computed
#   (*multi-head latent attention*, MLA). Positions enter through a second, short key, which RoPE rotates; it is stored
#   as well, and all heads share it.
#
# **Predict:** a model has 128 heads of size 128. MLA stores a latent of 512 numbers and a rotated key of 64 numbers.
# How many times as many numbers do the keys and values of all heads contain?

# %%
predict(
    "latent_gain",
    "Keys and values of all heads are larger by a factor of",
    unit="times",
)

# %%
with reveal_prediction("latent_gain") as truth:
    truth(2 * 128 * 128 / (512 + 64))

# %% [markdown]
# In large models, some channels of the keys are far larger than the others, for every token. So each channel of the
# keys needs its own scale. Values have no such channels, and one scale for each token is enough. But the scale of a
# channel is known only when all its tokens have arrived. Therefore new keys stay in fp32 until there are `block` of
# them; then this block is stored as int8.
#
# Write five functions. The first three handle one head of keys and values, with `size` numbers each.
#
# * `int8_along(table, dim)` → (integers, scales), with one scale for each row if dim = 1, or for each column if dim =
#   0. A scale is the largest magnitude / 127, rounded to fp16, but 1 where the result is 0. An integer is the value /
#   the rounded scale, rounded to nearest; halves are rounded to the even integer. `integers` is torch.int8, from −127
#   to 127; `scales` is torch.float16, with one column or one row.
# * `appended(cache, key, value, block)` → the cache with one more token, whose key and value have `size` numbers. The
#   cache is a dict of five tables, which have no rows at first. `"keys"` (int8) has a row for each token of a full
#   block. `"key_scales"` (fp16) has a row of `size` scales for each full block. `"recent"` (fp32) contains the keys of
#   the block that is not yet full. As soon as there are `block` recent keys, they become a full block. `"values"`
#   (int8) has a row for each token, and so has `"value_scales"` (fp16), with one column.
# * `attended_int8(queries, cache, block)` → queries × size, in fp32. Each query attends to all tokens, including recent
#   ones: softmax(q · k / √size), times the values. First multiply the integers by their scales. Each row of queries
#   belongs to one query head; these heads share the cache.
# * `cache_bytes(layers, heads, kv_heads, size, block)` → the bytes that a token takes in such a cache, including its
#   share of the scales. There are `heads` query heads and `kv_heads` heads of keys and values; all blocks are full.
# * `latent_bytes(layers, heads, latent, rope, bits)` → the bytes that a token takes with MLA, at `bits` bits per number
#   and without scales. `latent` and `rope` are the sizes of the latent and of the rotated key.


# %% solve="kv_int8"
def int8_along(table, dim):
    """(integers, one fp16 scale for each row or column)."""
    ### BEGIN SOLUTION
    line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
    line_scales = line_scales.where(line_scales > 0, 1.0)
    return (table / line_scales.float()).round().to(torch.int8), line_scales
    ### END SOLUTION


def appended(cache, key, value, block):
    """The cache with one more token."""
    ### BEGIN SOLUTION
    integers, of_token = int8_along(value[None], 1)
    grown = dict(cache)
    grown["values"] = torch.cat([cache["values"], integers])
    grown["value_scales"] = torch.cat([cache["value_scales"], of_token])
    grown["recent"] = torch.cat([cache["recent"], key[None]])
    if len(grown["recent"]) == block:
        integers, of_channels = int8_along(grown["recent"], 0)
        grown["keys"] = torch.cat([cache["keys"], integers])
        grown["key_scales"] = torch.cat([cache["key_scales"], of_channels])
        grown["recent"] = grown["recent"][:0]
    return grown
    ### END SOLUTION


def attended_int8(queries, cache, block):
    """The attention of queries over a cache in 8 bits."""
    ### BEGIN SOLUTION
    of_keys = cache["key_scales"].float().repeat_interleave(block, 0)
    all_keys = torch.cat([cache["keys"] * of_keys, cache["recent"]])
    all_values = cache["values"] * cache["value_scales"].float()
    scores = queries @ all_keys.T / queries.shape[1] ** 0.5
    return scores.softmax(1) @ all_values
    ### END SOLUTION


def cache_bytes(layers, heads, kv_heads, size, block):
    """Bytes per token, including its share of the scales."""
    ### BEGIN SOLUTION
    return layers * kv_heads * (2 * size + 2 + 2 * size / block)
    ### END SOLUTION


def latent_bytes(layers, heads, latent, rope, bits):
    """Bytes per token with multi-head latent attention."""
    ### BEGIN SOLUTION
    return layers * (latent + rope) * bits / 8
    ### END SOLUTION


# %% check="kv_int8"
check("kv_int8")

# %% [markdown]
# Which scales do keys need? The next cells use the keys of your model's first head, with channel 3 made 20 times as
# large:


# %%
def keys_with_an_outlier():
    """The keys of 64 tokens in the first head of the first layer."""
    with torch.no_grad():
        entered = model.embedding(text[0, :-1]) + model.position.weight
        made = model.layers[0].qkv(model.layers[0].norm_1(entered))
    head_keys = made.unflatten(1, (3, heads, -1))[:, 1, 0].clone()
    head_keys[:, 3] *= 20
    return head_keys


# %%
with requires_solution("kv_int8"):
    head_keys = keys_with_an_outlier()
    others = torch.arange(head_keys.shape[1]) != 3
    for dim, lines in ((0, "channel"), (1, "token")):
        integers, line_scales = int8_along(head_keys, dim)
        off = (integers * line_scales.float() - head_keys)[:, others]
        error = off.norm() / head_keys[:, others].norm()
        print(f"one scale per {lines}: error of the other channels {error:.2%}")

# %% [markdown]
# And how large are the caches? The next cell prints the sizes for a model of 32 layers with 32 query heads of size 128,
# then for MLA with the sizes above in 61 layers.

# %%
with requires_solution("kv_int8"):
    for kv_heads in (32, 8):
        halves = 32 * kv_heads * 2 * 128 * 2
        eight_bits = cache_bytes(32, 32, kv_heads, 128, 32)
        print(
            f"{kv_heads} heads: fp16 {halves:,} B, 8 bits {eight_bits:,.0f} B per token"
        )
    print(f"MLA in bf16: {latent_bytes(61, 128, 512, 64, 16):,.0f} B per token")

# %% [markdown]
# In each layer, this MLA stores as much as GQA with 2.25 heads of size 128, for any number of query heads. The price is
# computation: keys and values are computed from the latent again, or the matrices that compute them are multiplied into
# those of the queries and of the output.

# %% [markdown]
# ## Where you are

# %%
Progress("lab12_language_model")
