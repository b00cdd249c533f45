# %% [markdown]
# # Serving: batches, caches, queues
#
# A model is trained once and then used for years. Deck [001] asks: *how do I ensure the model can serve the demand?*
# This lab begins with a service that cannot: 99 of 100 users should see a first word within five seconds, but some wait
# for half a minute. At the end, the same model on the same device serves many times that load within the limit. You buy
# nothing; you only change what the service caches, which requests share a batch, and which request runs next.
#
# After this lab you can
#
# * decode with a cache of keys and values, and say how many sequences a memory holds;
# * calculate from a chip and a model how long prompts and tokens take, and what a larger batch gains, if anything;
# * admit requests, evict them and page memory as servers of language models do;
# * say which load a service can take within a limit for 99 of 100 requests, and why utilization does not measure it.
#
# **About 160 minutes (estimated)**, in two sittings: the first ends with section 2. Practice carries no points; it
# takes another 82 minutes (estimated), and its sections can be done in any order.
#
# | exercise | `kv_cache` | `decode_bound` | `continuous` | `two_services` |
# |---|---|---|---|---|
# | section | 1 | 2 | 3 | 4 |
# | minutes | 44 | 36 | 50 | 30 |
#
# | practice | `batcher` | `streams` | `micro_batch` |
# |---|---|---|---|
# | section | 5 | 6 | 7 |
# | minutes | 26 | 25 | 31 |
#
# Your functions must not change their inputs unless the text says so. You need no GPU: requests are random, devices are
# modelled, and both are labelled. *Write your prediction down* before you run the next cell: the result appears
# next to it only then. Lecture slides are quoted by deck: [000] optimizing training pipelines, [001] course
# introduction, [002] software perspective.
#
# A failing check shows the first case that is wrong, and what your code returned. `case("kv_cache")` returns the inputs
# of that case as Python values, and `hint("kv_cache")` gives hints, one at a time.

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
request_count = 150

# %% given
import numpy as np
import torch

from edl_labs.device import best_device
from edl_labs.plots import serving_pictures, style
from edl_labs.units import seconds
from edl_labs.virtual import server as serving

# %%
Progress("lab09b_serving")

# %% [markdown]
# ## A service that misses its limit
#
# A decoder of 6.7 billion parameters runs on one A100 with 80 GB. Prompts have about 300 tokens, answers about 150, and
# requests arrive at random. The service answers them in order, one after the other. **Predict:** with one request every
# two seconds on average, what is the p99 of the wait for the first word? (p99 is the smallest time that at least 99 %
# of the requests do not exceed.) And with one request a second?

# %% given
decoder = serving.DecoderShape("7B", parameters=6_738_000_000)
machine = serving.ServerMachine.of(
    "A100-80GB", decoder, most_sequences=32, step_s=1e-3, sequence_s=2e-5
)


def drawn_load(per_s, *, prompt=300, count=None, seed=9):
    """Requests of random lengths that arrive at random for 40 s or longer."""
    rng = np.random.default_rng(seed)
    count = count or max(request_count, int(40 * per_s))
    times = serving.poisson_times(rng, count=count, per_s=per_s)
    lengths = {"count": count, "spread": 0.7, "least": 8}
    prompts = serving.drawn_lengths(rng, median=prompt, most=8 * prompt, **lengths)
    answers = serving.drawn_lengths(rng, median=150, most=1000, **lengths)
    return serving.arrivals_of(times, prompts, answers)


def one_by_one(server):
    """A policy: the next request begins when the previous one has ended."""
    for request in server.finished:
        server.free(request)
    for request in server.running or server.waiting[:1]:
        if request.needs:
            server.allocate(request, request.needs)
        if not server.running:
            server.admit(request)


def served(policy, per_s, **options):
    """The result of serving a load under a policy."""
    server = serving.VirtualServer(machine, drawn_load(per_s, **options))
    return serving.replay(server.run(policy))


# %%
predict("wait_half", "At 0.5 requests/s, p99 of the first word is", unit="s")
predict("wait_one", "At 1 request/s, it is", unit="s")

# %%
with reveal_prediction("wait_half", "wait_one") as truth:
    opening = {rate: served(one_by_one, rate, count=60) for rate in (0.5, 1.0)}
    for rate, run in opening.items():
        p50, p99 = run.time_to_first_token_s(0.5), run.time_to_first_token_s(0.99)
        told = f"first word p50 {seconds(p50)}, p99 {seconds(p99)}"
        print(f"modelled, {rate:g}/s: {told}, busy {run.utilisation:.0%}")
    _, axes = style.subplots(figsize=(9, 4))
    axes = serving_pictures.draw_requests(
        axes, opening[1.0], title="1 request per second (modelled)"
    )
    print("the limit is missed while the device is idle for part of the time")
    waits = [run.time_to_first_token_s(0.99) for run in opening.values()]
    truth(wait_half=waits[0], wait_one=waits[1])
# %% [markdown]
# A request that arrives while another one is being served waits for *all* of that answer. Some terms: the *time to
# first token* (TTFT) is from arrival to the first word, the *inter-token latency* (ITL) is the time between later
# words, and
# *goodput* counts the answers that met a limit. How long does one answer take, and why?

# %% [markdown]
# ## 1. What a token leaves behind
#
# A new token attends to all tokens before it. Their keys and values do not change, so a server caches them: one key and
# one value in every layer, for every head. **Predict:** with 32 layers and 32 heads of 128 numbers of 2 bytes, how many
# bytes does a token leave in the cache, and how many does a sequence of 4096 tokens leave?

# %%
predict("token_bytes", "A token leaves", unit="KiB")
predict("sequence_bytes", "4096 tokens leave", unit="GiB")

# %% [markdown]
# Write `decode(cache, q, k, v)`: one new token in each row of a batch, in one layer. `q` is [rows, heads, size], `k`
# and `v` are [rows, kv_heads, size]; they have not been rotated yet. The cache is a dict: `"k"` and `"v"` are [rows,
# kv_heads, cells, size], and `"lengths"` [rows] says how many cells of each row are filled. *Rows have different
# lengths*; the unused cells after them contain old (finite) numbers from earlier requests. Every row has room for the
# new token. Keys in the cache are already rotated. Write the new token's key and value into the cache, and increase
# `"lengths"` (in place, or as a new tensor in the dict). Return the outputs, [rows, heads, size]: the softmax of the
# scores divided by the square root of `size`, times the values. With fewer `kv_heads` than heads (grouped queries), the
# first `heads // kv_heads` heads share the first kv head, and so on.
#
# Also write `fits(chip, model, tokens)`: how many sequences of `tokens` tokens fit into `chip["memory_bytes"]` next to
# the weights (0 if not even the weights fit). A model is a dict of `parameters`, `layers`, `heads`, `kv_heads`,
# `head_size` and `number_bytes`.


# %% given
def rotate(x, positions):
    """Rotary positions: x is [rows, heads, size], positions [rows], counted from 0."""
    half = x.shape[-1] // 2
    turns = 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = positions[:, None, None] * turns
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


# %% solve="kv_cache"
def decode(cache, q, k, v):
    """The outputs of one new token in each row."""
    ### BEGIN SOLUTION
    rows, at = torch.arange(len(q)), cache["lengths"]
    cache["k"][rows, :, at] = rotate(k, at)
    cache["v"][rows, :, at] = v
    cache["lengths"] = at + 1
    group = q.shape[1] // k.shape[1]
    keys, values = (cache[name].repeat_interleave(group, dim=1) for name in ("k", "v"))
    scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys) / q.shape[-1] ** 0.5
    beyond = torch.arange(keys.shape[2]) > at[:, None, None]
    weights = scores.masked_fill(beyond, -torch.inf).softmax(dim=-1)
    return torch.einsum("rht,rhtd->rhd", weights, values)
    ### END SOLUTION


def fits(chip, model, tokens):
    """How many sequences fit next to the weights."""
    ### BEGIN SOLUTION
    room = max(0, chip["memory_bytes"] - model["parameters"] * model["number_bytes"])
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])
    ### END SOLUTION


# %% check="kv_cache"
check("kv_cache")

# %%
with (
    requires_solution("kv_cache"),
    reveal_prediction("token_bytes", "sequence_bytes") as truth,
):
    shape = {"parameters": 6_738_000_000, "layers": 32, "heads": 32, "kv_heads": 32}
    shape |= {"head_size": 128, "number_bytes": 2}
    token = decoder.kv_token_bytes
    many = f"4096 tokens leave {4096 * token / 2**30:.0f} GiB"
    print(f"a token leaves {token / 2**10:.0f} KiB, {many}")
    for kv_heads in (32, 8):
        count = fits({"memory_bytes": 80e9}, {**shape, "kv_heads": kv_heads}, 4096)
        print(f"{kv_heads} kv heads: {count:.0f} sequences of 4096 tokens on 80 GB")
    truth(token_bytes=token, sequence_bytes=4096 * token)

# %% [markdown]
# A card with 80 GB has room for 30 sequences of 4096 tokens; a card with 186 GB has room for 80. With half as many kv
# heads, twice as many fit. How many you *want* to run at once is the next question.

# %% [markdown]
# ## 2. Reading to write one word
#
# Deck [002] has an example: a linear layer with 4096 outputs and 1024 inputs in FP16. With a batch of 512 it does 315
# FLOP for each byte moved; with a batch of 1 it does about 1 (0.99878, to be exact). A V100 needs 138.9 FLOP/B to be
# limited by computing. A decoding step is a series of such layers, with one row for each sequence of the batch; besides
# the weights it reads the keys and values of every sequence. **Predict:** an A100 needs 153 FLOP/B. What is the
# smallest batch for which the decoder above computes for at least as long as it reads, if each sequence has 2000
# tokens?

# %%
predict(
    "ridge",
    "The batch at the ridge",
    choices=("about 150", "about 300", "there is none"),
)

# %% [markdown]
# Write, for a chip with `flop_per_s` and `memory_byte_per_s` and a model as above,
#
# * `prefill_s(chip, model, tokens)`: the time in seconds of a prompt of that many tokens, computed all at once;
# * `decode_s(chip, model, batch, context)`: the time in seconds of a step in which each of `batch` sequences gets one
#   token, which looks back at `context` tokens, including itself;
# * `ridge_batch(chip, model, context)`: the smallest batch whose step computes for at least as long as it reads, or
#   None if there is no such batch for this chip, model and context.
#
# Each token needs 2 FLOP for each parameter, and 4 · layers · heads · head_size FLOP for each token that it looks back
# at (including itself). Each *step* reads the weights once. A prompt moves the keys and values of its tokens once, when
# they are written. A decoding sequence moves those of its `context` tokens once each; writing the new ones adds
# nothing. The time of a step is the longer of computing and moving. The stub `step_parts`, which returns the FLOPs and
# bytes of a step, is optional. Its arguments are sums over the batch: `tokens` counts the tokens computed,
# `looked` counts those that they look back at, and `moved` counts those whose keys and values are moved.
# You may change or delete it; only your code calls it.
#
# You may call `serving.ServerMachine`, which times a step by the same rules; it does not compute a ridge.


# %% solve="decode_bound"
def step_parts(model, tokens, looked, moved):
    """FLOPs and bytes of a step."""
    ### BEGIN SOLUTION
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + looks * looked
    return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
    ### END SOLUTION


def prefill_s(chip, model, tokens):
    """Seconds of a prompt."""
    ### BEGIN SOLUTION
    flops, moved = step_parts(model, tokens, tokens * (tokens + 1) // 2, tokens)
    return max(flops / chip["flop_per_s"], moved / chip["memory_byte_per_s"])
    ### END SOLUTION


def decode_s(chip, model, batch, context):
    """Seconds of a step with a token for each sequence."""
    ### BEGIN SOLUTION
    flops, moved = step_parts(model, batch, batch * context, batch * context)
    return max(flops / chip["flop_per_s"], moved / chip["memory_byte_per_s"])
    ### END SOLUTION


def ridge_batch(chip, model, context):
    """The smallest batch that computes for as long as it reads, or None."""
    ### BEGIN SOLUTION
    ridge = chip["flop_per_s"] / chip["memory_byte_per_s"]
    _, weights = step_parts(model, 0, 0, 0)
    flops, moved = step_parts(model, 1, context, context)
    gained = flops - ridge * (moved - weights)
    return -int(-ridge * weights // gained) if gained > 0 else None
    ### END SOLUTION


# %% check="decode_bound"
check("decode_bound")

# %%
with requires_solution("decode_bound"), reveal_prediction("ridge") as truth:
    a100 = {"flop_per_s": 312e12, "memory_byte_per_s": 2.039e12}
    shape = {"parameters": 6_738_000_000, "layers": 32, "heads": 32, "kv_heads": 32}
    shape |= {"head_size": 128, "number_bytes": 2}
    for context in (1, 100, 160, 2000):
        print(f"context {context}: ridge at batch {ridge_batch(a100, shape, context)}")
    for batch in (1, 16, 64):
        step_s = decode_s(a100, shape, batch, 500)
        told = f"{seconds(step_s)}, {batch / step_s:.0f} tokens/s"
        print(f"modelled, {batch} of 500 tokens: {told}")
    print(f"modelled, a prompt of 500: {seconds(prefill_s(a100, shape, 500))}")
    print("each sequence adds bytes of its own, but few FLOPs")
    truth("there is none")

# %% [markdown]
# A larger batch produces more tokens per second, because the weights are read once for the whole batch; the gain
# shrinks as the cache becomes larger than the weights. A prompt of 500 tokens takes no longer than three or four single
# tokens: the prompt is limited by computing, single tokens by reading.

# %% [markdown]
# ## 3. Continuous batches, paged blocks
#
# Answers have random lengths that are unknown before they end, so a batch that starts together does not end together.
# *Continuous batching* decides before every step which requests run in it. Memory comes in *blocks* of 16 tokens from a
# fixed pool: a sequence needs another block every 16 steps.
#
# **Predict:** answers have up to 1000 tokens, and half of them have fewer than 150. Suppose each request reserves
# blocks for the longest answer when it begins. What percentage of the reserved cache holds tokens?

# %%
predict("filled", "Of the reserved cache, the share that holds tokens is", unit="%")


# %%
def reserves(server):
    """A policy: blocks for the longest answer are reserved when a request begins."""
    for request in server.finished:
        server.free(request)
    for request in server.waiting:
        tokens = request.prompt_tokens + 1000
        blocks = server.machine.blocks_for(tokens)
        if blocks > server.free_blocks:
            break
        server.allocate(request, blocks)
        server.admit(request)


# %%
with reveal_prediction("filled") as truth:
    reserved = served(reserves, 8.0)
    print(f"modelled: {reserved.filled_share:.0%} of the reserved cache holds tokens")
    truth(reserved.filled_share)

# %% [markdown]
# Write `schedule(server)`, which is called before every step, and once after the last.
#
# | of `server` | is |
# |---|---|
# | `waiting`, `running` | requests, in the order of arrival (`waiting`) or of admission (`running`) |
# | `finished` | requests that have ended and still hold their blocks |
# | `free_blocks` | blocks of the pool that are free |
# | `allocate(request, blocks)` | gives it that many more blocks |
# | `admit(request)` | lets it run from the next step on, which computes its prompt; allocates no blocks |
# | `free(request)` | returns the blocks of a finished request to the pool |
# | `preempt(request)` | stops it: its blocks become free, it waits again, and its tokens are recomputed later |
# | `machine.most_sequences` | how many may run at a time |
#
# A request has `number`, `arrival_s`, `prompt_tokens`, `generated_tokens`, `blocks` (how many it holds), and `needs`:
# how many more it needs for its next step. A running request that does not get the blocks it needs stalls. A value that
# you have read is not updated: read it again after a call. In the end every request must be answered and every block
# must be free. Your schedule may take at most 5 % more time than a good one, and the p99 of its time to first token may
# be at most 30 % higher. (The good schedule has a dozen lines and holds no blocks in reserve; which request it preempts
# matters. The check serves ten loads, which takes about 15 s.)


# %% solve="continuous"
def schedule(server):
    """Decides who runs in the next step, and with which blocks."""
    ### BEGIN SOLUTION
    for one in server.finished:
        server.free(one)
    while sum(one.needs for one in server.running) > server.free_blocks:
        server.preempt(server.running[-1])
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    for one in server.waiting:
        is_full = len(server.running) == server.machine.most_sequences
        if is_full or one.needs > server.free_blocks:
            break
        server.allocate(one, one.needs)
        server.admit(one)
    ### END SOLUTION


# %% check="continuous"
check("continuous")

# %%
with requires_solution("continuous"):
    small = machine.replace(blocks=700)
    figure, rows = style.subplots(2, 1, figsize=(9, 6), sharex=True)
    for axes, policy in zip(rows, (reserves, schedule), strict=True):
        load = drawn_load(6.0, count=60)
        run = serving.replay(serving.VirtualServer(small, load).run(policy))
        serving_pictures.draw_pool(axes, run, title=policy.__name__)
        print(f"modelled, {policy.__name__}: {seconds(run.makespan_s)}")

# %% [markdown]
# **The same in torch.** `server.admit(request)` puts a request into a row of the batch, `server.allocate` gives it a
# part of the cache (here a row of `state`), `server.finished` lists the rows whose answers have ended, and
# `server.free` makes these rows available to other requests. A step computes all eight rows, empty or not:


# %%
def answers_in_torch(cell, state, *, refills):
    """64 answers of 1 to 100 tokens, in the rows of one batch."""
    waiting, rows = [1 + 37 * number % 100 for number in range(64)], []
    while waiting or rows:
        if refills or not rows:
            places = len(state) - len(rows)
            rows, waiting = rows + waiting[:places], waiting[places:]  # admit
        state = cell(state, state)
        rows = [left - 1 for left in rows if left > 1]  # finished, free


# %%
def continuous_in_torch():
    """Batches that begin and end together, and rows that are filled again."""
    device = best_device()
    given = torch.nn.GRUCell(256, 256).to(device), torch.zeros(8, 256, device=device)
    runs = {"whole batches": False, "filled again": True}
    return {
        name: lambda refills=refills: answers_in_torch(*given, refills=refills)
        for name, refills in runs.items()
    }


# %%
in_torch(
    continuous_in_torch,
    anywhere=True,
    told="recorded on 2 busy cores: whole batches 276 ms, filled again 190 ms",
)

# %% [markdown]
# ## 4. The same service, in time
#
# Now the service from the beginning uses your schedule. Its limit: 99 of 100 users see the first word within five
# seconds. **Predict:** answering one by one, it met the limit at one request every ten seconds. How many times that
# load can the same device take now? (The cell after the box serves several thousand requests and takes up to half a
# minute.)

# %%
predict("times", "The largest load within the limit grows", unit="times")

# %% given
from IPython.display import display

from edl_labs.ui.serving_widget import ServingExplorer

limit_s = 5.0
rates = {
    "one by one": (0.05, 0.1, 0.15, 0.2, 0.4, 1),
    "continuous": (1, 4, 8, 10, 14),
}


def draw_first_words(axes, curve, **look):
    """p99 of the first word over the load, with its knee; the last one is too large."""
    came = [one.offered_per_s for one in curve.points]
    first_s = [one.first_token_p99_s for one in curve.points]
    axes.plot(came, first_s, **look)
    told = f"{came[-1]:g}/s arrive, {curve.points[-1].request_per_s:.2g}/s answered"
    place = {"textcoords": "offset points", "xytext": (0, 8), "ha": "right"}
    axes.annotate(
        told, (came[-1], first_s[-1]), fontsize="small", color=style.TEXT, **place
    )
    kept_up = [p for p in curve.points if p.request_per_s > 0.9 * p.offered_per_s]
    knee = [curve.points[0], *kept_up][-1]
    told = f"knee: {knee.offered_per_s:g}/s, busy {knee.utilisation:.0%}"
    at, below = (knee.offered_per_s, knee.first_token_p99_s), {"xytext": (8, -30)}
    below["textcoords"] = "offset points"
    axes.annotate(told, at, fontsize="small", color=style.TEXT, **below)


# %%
with requires_solution("continuous"), reveal_prediction("times") as truth:
    curves = {}
    for name, policy in (("one by one", one_by_one), ("continuous", schedule)):
        curves[name] = serving.load_curve(machine, policy, drawn_load, rates[name])
        kept = curves[name].largest_within(first_token_s=limit_s)
        print(f"modelled, {name}: within the limit up to {kept:g} requests/s")
    before, after = (
        one.largest_within(first_token_s=limit_s) for one in curves.values()
    )
    truth(after / before)

# %%
with requires_solution("continuous"):
    schedule(serving.VirtualServer(machine, []))  # stops here if it is missing
    figure, axes = style.subplots(figsize=(8, 4))
    looks = ((style.BLUE, "o"), (style.ORANGE, "s"))
    for (name, curve), (color, mark) in zip(curves.items(), looks, strict=True):
        draw_first_words(axes, curve, label=name, color=color, marker=mark)
    axes.axhline(limit_s, color=style.RED, linestyle="--", label="limit")
    axes.set(xscale="log", yscale="log", xlabel="requests arriving per second")
    axes.set(ylabel="first word, p99 (s)", title="One device, two policies (modelled)")
    axes.set(ylim=(0.02, 500), xlim=(0.04, 60))  # with room for the notes
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.legend()

# %% [markdown]
# Each curve rises slowly and then steeply. In between is the *knee*, where more requests arrive than the device can
# answer, and the queue grows; how high the curve goes then depends on how long the load lasts. To the right of the
# knee, a larger load adds few answers and much waiting. Choose a service's load to the left of its knee, by its p99
# instead of its mean. Do not choose it by how busy the device is: answering one by one, the service missed its limit
# while the device was idle for part of the time. With random arrivals, the wait grows without bound as the load
# approaches what the device can do. Try loads of your own: what moves the knee, and what does not?

# %%
with requires_solution("continuous"):
    display(ServingExplorer(machine.replace(blocks=700), schedule))

# %% [markdown] explain="two_services"
# **Explain (read by your instructor).** Two services want the same GPUs and the same decoder. One completes code while
# people type: prompts of 2000 tokens, answers of 20, and a suggestion that arrives after 0.5 s is useless. The other
# summarizes the day's documents at night: prompts of 8000 tokens, answers of 500, due in the morning. (a) For each
# service, say which figure matters (time to first token, time between tokens, tokens per second), and what limits it:
# computing or reading. (b) Which batch size and which policy for starting a batch would you choose for each, and what
# would happen to each service under the other's policy? (c) Somebody shows that the GPUs of the first service are busy
# for 40 % of the time, and proposes to halve their number. What do you ask to see before you answer?

# %% [markdown]
# ## 5. Practice: batches, and the last of a hundred
#
# From here on everything is optional and carries no points. Another service computes each answer in a single step: a
# *ranker* of 0.56 billion parameters scores texts for a search. Batches are padded to their longest text; most texts
# are short, a few are long. "Larger batches" is deck [000]'s remedy for a device that waits for launches. **Predict:**
# at night 40 requests arrive per second, and the policy waits until a batch of 32 is full. What is the p50 of the
# latency?

# %% given
ranker = serving.DecoderShape(
    "ranker", layers=24, heads=16, kv_heads=16, head_size=64, parameters=560_000_000
)
scorer = serving.ServerMachine.of(
    "A100-80GB", ranker, blocks=10**6, most_sequences=32, step_s=2e-3, padded=True
)


def texts(per_s, count=400, seed=5):
    """Texts to score: one in twelve is long."""
    rng = np.random.default_rng(seed)
    times = serving.poisson_times(rng, count=count, per_s=per_s)
    lengths = serving.drawn_lengths(rng, count=count, median=64, spread=0.5, most=200)
    lengths[::12] = [int(n) for n in rng.integers(800, 1600, size=len(lengths[::12]))]
    return serving.arrivals_of(times, lengths, [1] * count)


def full_batches(now_s, queue):
    """Waits until a batch is full."""
    return [one.number for one in queue[:32]] if len(queue) >= 32 else []


def scored(policy, per_s):
    """The result of scoring texts under a policy."""
    server = serving.VirtualServer(scorer, texts(per_s, count=384))
    return serving.replay(serving.serve_batches(server, policy))


# %%
predict("night", "At night, half of the requests wait longer than", unit="ms")
predict(
    "day",
    "By day, at 600 per second, full batches have a p99",
    choices=("below 0.1 s", "above 0.1 s"),
)

# %%
with reveal_prediction("night", "day") as truth:
    for name, rate in (("night", 40), ("day", 600)):
        run = scored(full_batches, rate)
        p50, p99 = run.latency_s(0.5), run.latency_s(0.99)
        told = f"p50 {seconds(p50)}, p99 {seconds(p99)}, busy {run.utilisation:.0%}"
        print(f"modelled, {name}: {told}")
        half = p50 if name == "night" else half
    truth(night=half, day="above 0.1 s" if p99 > 0.1 else "below 0.1 s")

# %% [markdown]
# In a full batch, each of the 32 texts takes as long as the longest one. Write
#
# * `next_batch(now_s, queue, service, limit_s)`: called when the device is idle and at least one request waits; returns
#   the `number`s of the requests to run now. `queue` has requests in the order of their arrival, each with `number`,
#   `arrival_s` and `prompt_tokens`; `service.most_sequences` is the largest batch, and `service.batch_s([64, 64, 90])`
#   gives the seconds of a batch of such prompts. Return an empty list to wait for the next arrival, or a time (in
#   seconds, like `now_s`) to wait until then or until the next arrival, whichever is first. It is called for loads at
#   night, by day and in bursts; in each, p99 must be within `limit_s`, which is twice what a good policy reaches.
# * `servers_for(demand_per_s, limit_s, runs)`: the number of servers needed to serve a demand within a limit. Each of
#   `runs` was measured on one server: requests arrived at the rate `per_s` and took `latencies_s`. A load is within the
#   limit if the p99 of its run is; each server gets an equal share of the demand.
#
# A policy must not know the next request. So your policy runs on two loads that are the same up to some moment, and
# must make the same decisions before that moment. Use no random numbers, and keep nothing from one call for a later
# one.


# %% solve="batcher"
def next_batch(now_s, queue, service, limit_s):
    """Numbers of the requests that run next."""
    ### BEGIN SOLUTION
    size = queue[0].prompt_tokens.bit_length()
    alike = [one.number for one in queue if one.prompt_tokens.bit_length() == size]
    return alike[: service.most_sequences]
    ### END SOLUTION


def servers_for(demand_per_s, limit_s, runs):
    """How many servers keep the limit at this demand."""
    ### BEGIN SOLUTION
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if latencies[-(-99 * len(latencies) // 100) - 1] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept))
    ### END SOLUTION


# %% check="batcher"
check("batcher")

# %%
with requires_solution("batcher"):
    for name, rate in (("night", 40), ("day", 600), ("rush", 800)):
        run = scored(lambda now_s, queue: next_batch(now_s, queue, scorer, 0.1), rate)
        p50, p99 = run.latency_s(0.5), run.latency_s(0.99)
        told = f"p50 {seconds(p50)}, p99 {seconds(p99)}, busy {run.utilisation:.0%}"
        print(
            f"modelled, {name}: {told}, {len(run.requests) / run.steps:.1f} in a batch"
        )

# %% [markdown]
# This policy never waits to fill a batch, and never mixes a sentence with a book: batches grow as the queue grows. In
# the rush hour the device is busy nearly all of the time, and p99 rises: with random arrivals, the wait grows without
# bound as the load approaches what the device can do. So you cannot simply divide the demand by the throughput.

# %% [markdown]
# ## 6. Practice: requests in streams
#
# Small networks leave most of a GPU idle: their kernels have few blocks. Deck [002] lists *multi-stream execution* and
# *time fusion* among the features of TensorRT: independent requests run side by side in streams, and the time steps of
# a recurrent network become one kernel. **Predict:** a GPU has 108 SMs, and one kernel of a request fills all of them.
# How does the *mean* time to an answer change with four streams instead of one?

# %%
predict("mean", "With four streams the mean", choices=("falls", "stays", "rises"))

# %% [markdown]
# Write `serve(gpu, requests)` with the two calls below. Each request is a dict, and all requests of a load have the
# same sizes. Each step of a request reads what its previous step wrote. A loop may become one kernel only if the
# request is `fusible` (its state fits into the SMs). All requests are available from the start. Wait once, at the end.
# The time of the last answer and the mean time to an answer may each be 5 % longer than in a good program.
# `gpu.machine.sm_count` is the number of blocks that can run at the same time.


# %% given
from edl_labs.virtual import VirtualGPU, VirtualMachine


def one_step(gpu, number, request, at, stream):
    """Launches time step `at` of the request of this number."""
    size = {"duration_s": request["block_s"], "blocks": request["blocks"]}
    gpu.launch(f"request{number} step{at}", stream=stream, **size)


def whole_loop(gpu, number, request, stream):
    """Launches all time steps of a request as one kernel."""
    took_s = request["steps"] * request["block_s"]
    size = {"duration_s": took_s, "blocks": request["blocks"]}
    gpu.launch(f"request{number} loop", stream=stream, **size)


# %% solve="streams"
def serve(gpu, requests):
    """Answers all requests."""
    ### BEGIN SOLUTION
    side_by_side = max(1, gpu.machine.sm_count // requests[0]["blocks"])
    streams = [gpu.Stream() for _ in range(side_by_side)]
    for first in range(0, len(requests), side_by_side):
        group = list(enumerate(requests))[first : first + side_by_side]
        for at in range(requests[0]["steps"]):
            for (number, one), stream in zip(group, streams, strict=False):
                if not one["fusible"]:
                    one_step(gpu, number, one, at, stream)
                elif at == 0:
                    whole_loop(gpu, number, one, stream)
    gpu.synchronize()
    ### END SOLUTION


# %% check="streams"
check("streams")

# %%
with reveal_prediction("mean") as truth:
    means = {}
    for count in (1, 4):
        gpu = VirtualGPU(VirtualMachine.of("A100-80GB", sm_count=108).warm())
        streams = [gpu.Stream() for _ in range(count)]
        for number in range(8 * 4):
            asked = {"blocks": 108, "block_s": 60e-6}
            one_step(gpu, number // 8, asked, number % 8, streams[number // 8 % count])
        gpu.synchronize()
        spans = [one for one in gpu.timeline.spans if one.kind == "kernel"]
        ends = {one.name.split()[0]: one.end_s for one in spans}
        means[count] = sum(ends.values()) / len(ends)
        print(f"modelled, streams: {count}, mean {seconds(means[count])}")
    truth("rises" if means[4] > 1.05 * means[1] else "stays")

# %% [markdown]
# ## 7. Practice: a web service
#
# Deck [001] announces "basics of web service deployment" and "deployment of trained networks, both on their own and as
# part of a larger system". Most models are reached over HTTP. For each request a *handler* runs: it puts the request
# into a *queue* and waits for its answer. One task takes requests out of the queue and runs them together as a
# *micro-batch*. It has at most `max_batch` requests, and starts when it is full or its oldest request has waited
# `max_wait_s`. Two kinds of request get status 503 ("service unavailable") instead of an answer. A request that finds
# `max_queue` others in the queue gets it at once. A request that has waited longer than `timeout_s` (which is above
# `max_wait_s`) gets it because its client has given up, and an answer would only delay others. Two more addresses are
# for other programs. `/health` tells a load balancer whether to send requests here; `/metrics` gives counts of
# requests, batch sizes, latencies and the queue's length to a monitor.
#
# **Predict:** a model takes 8 ms for one input, and 0.25 ms more for each further input of a batch. 200 requests per
# second arrive at random; 32 may wait, for up to 0.2 s. If the model runs them one by one, what percentage gets a 503?

# %%
predict("turned_away", "One by one, the share that gets a 503 is", unit="%")

# %% [markdown]
# Write the three rules. They do not read a clock, so the check can run them in virtual time, and a real server can use
# them too. `queue` has the waiting requests in the order of their arrival, each with `number` and `arrival_s`; `limits`
# has the four limits above as attributes.
#
# * `accepts(queue, limits)`: a request arrives while those in `queue` wait. Returns whether it may wait too.
# * `expired(now_s, queue, limits)`: returns the numbers of the requests that have waited *longer* than `timeout_s`.
# * `due(now_s, queue, limits)`: the model is idle, and at least one request waits. Returns the numbers of the batch to
#   run now; or, if no batch is due yet, the time at which it will be due if no other request comes.
#
# The model runs one batch at a time. Whenever it is idle and a request waits, the service calls `expired` and then
# `due`: when a request arrives, when a batch ends, and at the time that `due` returned. A request that arrives at
# exactly that moment is already in the queue. In the check's cases every time is a multiple of 1/8 s, so sums are
# exact.


# %% solve="micro_batch"
def accepts(queue, limits):
    """Whether another request may wait."""
    ### BEGIN SOLUTION
    return len(queue) < limits.max_queue
    ### END SOLUTION


def expired(now_s, queue, limits):
    """Numbers of the requests that are given up."""
    ### BEGIN SOLUTION
    return [one.number for one in queue if now_s - one.arrival_s > limits.timeout_s]
    ### END SOLUTION


def due(now_s, queue, limits):
    """Numbers of the batch that runs now, or the time at which one is due."""
    ### BEGIN SOLUTION
    due_s = queue[0].arrival_s + limits.max_wait_s
    if len(queue) < limits.max_batch and now_s < due_s:
        return due_s
    return [one.number for one in queue[: limits.max_batch]]
    ### END SOLUTION


# %% check="micro_batch"
check("micro_batch")


# %%
def told_run(name, run):
    """A line of figures, modelled or measured."""
    p50, p99 = seconds(run.latency_s(0.5)), seconds(run.latency_s(0.99))
    told = f"{run.answered_per_s:.0f} answers/s, p50 {p50}, p99 {p99}"
    print(f"{name}: {told}, 503 {run.refused_share:.0%}, batch {run.mean_batch:.1f}")


# %%
def modelled(per_s, limits, took_s, count=800):
    """Requests that arrive at random, served in virtual time by your rules."""
    rules = serving.BatchRules(accepts, expired, due)
    came = serving.poisson_times(np.random.default_rng(7), count=count, per_s=per_s)
    return serving.serve_micro_batches(came, limits, rules, took_s).summary


# %%
def sweep(loads):
    """The model of the prediction, for (requests per s, max_batch, max_wait_s)."""
    runs = []
    for per_s, most, wait_s in loads:
        limits = serving.BatchLimits(most, wait_s, max_queue=32, timeout_s=0.2)
        runs.append(modelled(per_s, limits, lambda n: 8e-3 + 0.25e-3 * (n - 1)))
        told_run(f"modelled, {per_s}/s, batch <= {most}, wait {wait_s:g} s", runs[-1])
    return runs


# %%
with requires_solution("micro_batch"), reveal_prediction("turned_away") as truth:
    one_by_one_run, *_ = sweep([(200, 1, 0.0), (200, 16, 0.0), (200, 16, 0.02)])
    print("one by one, at most 125 a second can be answered")
    truth(one_by_one_run.refused_share)

# %%
with requires_solution("micro_batch"):
    sweep([(20, 16, 0.0), (20, 16, 0.02), (20, 16, 0.1)])

# %% [markdown]
# Larger batches increase throughput. Waiting for more requests gains little: while one batch runs, requests for the
# next one collect. So batches form even with `max_wait_s = 0`, and they grow with the load. At 20 requests per second,
# hardly any other request arrives during the wait, so waiting only adds to p50 and p99. Waiting pays if a larger batch
# saves more than the wait costs: with many requests, and a model whose time hardly grows with the batch. And the 503s
# keep the other answers in time: without them the queue would keep growing while more requests arrive than the model
# can answer, and all answers would be late.
#
# Now a real server on this machine, with your rules. These are its handlers and the task that runs batches. At an
# `await`, one handler waits and others continue; the model runs in a thread of its own, so the server accepts requests
# in the meantime.

# %%
from urllib.request import urlopen

from edl_labs import measure
from edl_labs.device import torch_threads
from edl_labs.inference import http_load, http_service


# %%
async def answer(service, asked):
    """POST /predict: an immediate refusal, or the answer from the request's batch."""
    if not accepts(service.queue, service.limits):
        return 503, {"error": "full"}
    return await service.reply_to(service.enqueue(asked))


async def health(service, asked):
    """GET /health: whether requests should be sent here."""
    return (503, "broken") if service.failure else (200, "ok")


# %%
async def metrics(service, asked):
    """GET /metrics: what the service counts, for a monitor."""
    return 200, service.counts.as_text(len(service.queue))


# %%
async def batches(service):
    """One task, forever: gives up late requests, runs due batches, or else waits."""
    while True:
        now_s, limits = service.now_s(), service.limits
        for number in expired(now_s, service.queue, limits):
            service.reply(number, 503, {"error": "timed out"})
        waiting = service.queue
        decided = due(now_s, waiting, limits) if waiting else float("inf")
        if isinstance(decided, (int, float)):
            await service.arrival(until_s=decided)
        else:
            await service.run(decided)


routes = {"POST /predict": answer, "GET /health": health, "GET /metrics": metrics}


# %% [markdown]
# The model has two layers with 64 MiB of weights, which are read once per batch. We measure its time without the
# service, for batches of 1 and 16, and simulate the service with these times: the same rules and the same arrivals, in
# virtual time. 200 requests arrive at 1.6 times the rate that the model could answer one by one; no client waits for
# another client's answer.


# %%
def small_ranker():
    """A network that reads its weights once per batch, as a function of requests."""
    items, first = torch.nn.Embedding(1000, 4096), torch.nn.Linear(4096, 4096)
    last = torch.nn.Linear(4096, 10)

    def model(asked):
        numbers = torch.tensor([one["item"] for one in asked])
        with torch.no_grad(), torch_threads(1):
            labels = last(first(items(numbers)).relu()).argmax(dim=1)
        return [{"label": label} for label in labels.tolist()]

    return model


# %%
def over_http(model, limits, came):
    """A load on a real server on this machine: what clients observed, and /metrics."""
    service = http_service.HttpService(model, limits)
    asked = [{"item": number} for number in range(len(came))]
    with http_service.served(service, routes, batches) as url:
        loaded = http_load.load_over_http(f"{url}/predict", asked, came, limit_s=4)
        state = urlopen(f"{url}/health").read().decode()
        page = urlopen(f"{url}/metrics").read().decode()
    bound_s = service.counts.latency_s.quantile_bound(0.99)
    print(f"batch <= {limits.max_batch}: {state}, /metrics: p99 at most {bound_s:g} s")
    return serving.ServiceRun(loaded.calls, tuple(service.counts.batch_sizes)), page


# %%
def batch_times(model):
    """Seconds of a batch of n, on a line through the times for 1 and 16."""
    asked = {n: ([{"item": 3}] * n,) for n in (1, 16)}
    took = {n: measure(model, inputs=asked[n], budget_s=0.3).median_s for n in (1, 16)}
    print(
        "measured without the service:",
        ", ".join(f"{n} in {seconds(took[n])}" for n in took),
    )
    each_s = max(0.0, took[16] - took[1]) / 15
    return lambda n: took[1] + each_s * (n - 1)


# %%
def modelled_and_measured():
    """In batches and one by one: the model's figures, and the server's."""
    model = small_ranker()
    took_s, runs = batch_times(model), {}
    load = {"count": 200, "per_s": 1.6 / took_s(1)}
    came = serving.poisson_times(np.random.default_rng(7), **load)
    for most in (16, 1):
        limits = serving.BatchLimits(most, 0.0, 32, timeout_s=25 * took_s(1))
        options = {"limits": limits, "took_s": took_s, **load}
        runs[f"modelled, batch <= {most}"] = modelled(**options)
        runs[f"measured, batch <= {most}"], page = over_http(model, limits, came)
    return runs, page


# %%
def draw_latencies(runs):
    """For each time, the share of the answers that took at most that long."""
    _, axes = style.subplots(figsize=(8, 3.5))
    for name, run in runs.items():
        color = style.BLUE if name.endswith(" 1") else style.ORANGE
        look = {"color": color, "linestyle": ":" if "modelled" in name else "-"}
        axes.ecdf(run.latencies_s, label=name, **look)
    axes.set(xlabel="from request to answer (s)", ylabel="share of the answers")
    axes.set(title="200 requests, in virtual time and over HTTP")
    axes.legend()


# %%
with requires_solution("micro_batch"):
    missing = http_service.missing_for_http()
    if missing:
        print(f"not run here: {missing}. Recorded on 2 busy cores, 174 requests/s:")
        print("in batches 164 answers/s, p99 84 ms, 503 0%; one by one 131, 245 ms, 7%")
    else:
        runs, page = modelled_and_measured()
        for name, run in runs.items():
            told_run(name, run)
        draw_latencies(runs)
        print(f"GET /metrics, one by one:\n{page}")

# %% [markdown]
# The server does more work than the simulation includes. HTTP and JSON take CPU time for each request, regardless of
# the batch. Here the clients also share the CPU with the server, so its batches take longer and collect more requests.
# The simulation does predict which rule answers more requests, and whether p99 rises or falls. `/metrics` is a page of
# counts: a *histogram* counts, for each bound, how many answers took at most that long. It gives only a bound for p99,
# but you can add up the counts of many servers, whereas you cannot add percentiles.
#
# In a larger system a load balancer distributes requests over several such processes; it asks each for `/health` and
# skips a process that returns 503 or nothing. A client that gets a 503 tries again later, with longer waits each time:
# immediate retries would keep an overloaded service overloaded. Model servers include such a batcher. NVIDIA's Triton
# Inference Server calls the limits `max_batch_size`, `max_queue_delay_microseconds`, `max_queue_size` and
# `default_timeout_microseconds`.

# %% [markdown]
# ## Where you are

# %%
Progress("lab09b_serving")
