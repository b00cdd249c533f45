# %% [markdown]
# # Many GPUs: who sends what, when
#
# Eight GPUs would be eight times as fast as one if they did not have to communicate. Who sends what to whom, and
# *when*, decides whether that costs 2 % or 70 % of the time. It also decides whether the job runs at all. A *rank* is
# one of the processes, with one GPU; a single rank that makes its calls in a different order can block a thousand
# others. People usually learn this on a rented cluster. Here every rank's program is recorded and replayed on a laptop,
# so you see each byte, each wait and each wrong sum exactly.
#
# After this lab you can
#
# * compute what a message and a collective cost, and pick the algorithm for a message size and a cluster;
# * write an all-reduce that is correct, fast and never hangs, and hide it behind the backward pass;
# * tell from the state of all ranks which one keeps the others waiting, and why.
#
# Lab07b covers models that do not fit on a single GPU.
#
# **About 158 minutes (estimated)**, in two sittings: the first ends with section 2. The practice sections carry no
# points; they take another 72 minutes (estimated) and can be done in any order.
#
# | exercise | `ring` | `pick_collective` | `buckets` | `who_hangs` |
# |---|---|---|---|---|
# | section | 1 | 2 | 3 | 4 |
# | minutes | 41 | 35 | 39 | 43 |
#
# | practice | `fit_a_link` | `no_sync` | `sync_batch_norm` |
# |---|---|---|---|
# | minutes | 20 | 21 | 31 |
#
# You need neither a GPU nor a second process: the GPUs are modelled, and results of modelled GPUs are labelled as such.
# *Write your prediction down* before you run the next cell. If there is a box, enter a number, with or without its
# unit, and press Enter. The result then appears next to it. Lecture slides are quoted by deck: [002] software
# perspective, [004] deep learning, hopefully faster. `hint("ring")` gives the hints of an exercise, one at a time.
#
# A check that fails shows the first wrong case and what your code returned. `case("ring")` gives that case's inputs as
# Python values, so that you can try your code on them.

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
ranks = 8
blocks = 48
real_processes = False

# %% given
import torch

from edl_labs.plots import style
from edl_labs.ui.bucket_widget import BucketExplorer
from edl_labs.units import byte_count, seconds
from edl_labs.virtual.cluster import ClusterMachine, VirtualCluster

# %%
Progress("lab07_many_gpus")

# %% [markdown]
# ## 1. The same sum on every rank
#
# In data parallel training every GPU (*rank*) has the same weights and its own part of the batch. After the backward
# pass each rank has its own gradients, but every rank needs their **sum**. The operation that computes it is called an
# *all-reduce*; most of this lab is about it.
#
# A message of `n` bytes takes `α + n / rate`: `α` passes before its first byte arrives, then the bytes follow. Deck
# [004]'s link has 6 GB/s; assume α = 20 µs. On a `VirtualCluster` each rank runs the same program, and `dist` uses the
# function names of `torch.distributed`. A tensor has only a size: nothing is computed, but every byte is tracked.
#
# **Predict:** every rank sends its 100 MB of gradients to rank 0, which adds them up and sends the sum back to each.
# How long does it take? A rank sends one message at a time, and receives one at a time.

# %%
predict("at_one_rank", f"With {ranks} ranks, the sum over rank 0 takes", unit="ms")


# %%
def over_rank_0(dist):
    """The sum of all ranks' gradients, by way of rank 0."""
    gradients = dist.tensor(gradient_bytes // 4, name="gradients")
    if dist.rank != 0:
        dist.send(gradients, 0)
        dist.recv(gradients, 0)
        return
    for other in range(1, dist.world_size):
        part = dist.empty(len(gradients))
        dist.recv(part, other)
        dist.add(gradients, part)
        dist.free(part)
    for other in range(1, dist.world_size):
        dist.send(gradients, other)


# %%
link = {"alpha_s": 20e-6, "byte_per_s": 6e9}
gradient_bytes = 100_000_000
with reveal_prediction("at_one_rank") as truth:
    slow = VirtualCluster.flat(ranks, **link).run(over_rank_0)
    print(f"modelled: {slow}")
    print(f"rank 1 ends with {slow.contents(1, 'gradients')[0]}")
    truth(slow.makespan_s)
    figure, axes = style.subplots(figsize=(9, 3))
    axes = slow.timeline.plot(axes)

# %% [markdown]
# One rank's link is busy all the time while the others wait, so twice as many ranks take twice as long. In a **ring**
# of P ranks, every rank sends to its right neighbour and receives from its left one, *all at the same time*. In each
# round a rank sends a chunk of one P-th of the buffer:
#
# * `P - 1` rounds *reduce and scatter*: each chunk goes around the ring and collects every rank's part, so that at the
#   end each rank has one finished chunk;
# * `P - 1` rounds *gather*: the finished chunks go around the ring and replace the unfinished ones.
#
# However many ranks there are, every rank sends `2(P - 1)/P` times the buffer, which is less than twice. Deck [004]
# asks how large the whole batch N must be so that two nodes spend as much time computing as sending. The intensity is
# `N/4` FLOP/B. In the deck, the ridge of the network (peak FLOP/s over bandwidth) is 1000 FLOP/B, so N is 4000 samples,
# 2000 per node. With P ranks in a ring the intensity is `N/(4(P - 1))`: each additional rank needs 4000 more samples.
#
# Two things go wrong in nearly every first attempt at a ring, and neither shows up on a single GPU. What does this
# program do?


# %%
def everybody_sends_first(dist):
    x, y = dist.tensor(8, name="x"), dist.empty(8, name="y")
    dist.send(x, (dist.rank + 1) % dist.world_size)
    dist.recv(y, (dist.rank - 1) % dist.world_size)


# %%
print(VirtualCluster.flat(3).run(everybody_sends_first))


# %% [markdown]
# A `send` returns only when its partner receives, but here no rank receives. With `isend` and `irecv` the rank
# continues at once. Then it is up to you which memory it may touch, and when:


# %%
def adds_at_once(dist):
    x, y = dist.tensor(8, name="x"), dist.empty(8, name="y")
    sent = dist.isend(x, (dist.rank + 1) % dist.world_size)
    received = dist.irecv(y, (dist.rank - 1) % dist.world_size)
    dist.add(x, y)
    sent.wait(), received.wait()


# %%
for race in VirtualCluster.flat(3).run(adds_at_once).races[:2]:
    print(race)

# %% [markdown]
# Write `all_reduce(dist, buffer)`, the program that each rank runs, for any number of ranks and any length. From `dist`
# you need:
#
# | call | does |
# |---|---|
# | `dist.get_rank()`, `dist.get_world_size()` | this rank's number, and the number of ranks |
# | `dist.send(x, dst)`, `dist.recv(x, src)` | return when the message has been received |
# | `dist.isend(x, dst)`, `dist.irecv(x, src)` | return a handle at once; its `wait()` returns when the transfer ends |
# | `dist.empty(count, dtype=buffer.dtype)`, `dist.free(x)` | allocate and free the rank's own memory |
# | `dist.add(x, y)`, `dist.copy(x, y)` | `x += y` and `x = y`, for equal numbers of elements |
# | `buffer[start:stop]`, `len(buffer)` | a part of the buffer (never empty), and its number of elements |
#
# In the end, on every rank, every element is the sum over all ranks, with each rank's value added exactly once. No rank
# may send more than `2(P - 1)` chunks (chunk sizes are rounded up), and your program may take at most 2 % longer than a
# ring. While a chunk is being sent, neither side may touch it. A link carries its messages one by one, in the order in
# which both sides became ready (at the same instant, lower ranks first), and none overtakes another. If you post all
# messages at once, a message may be stuck in that queue behind an earlier one while another link is idle, so post each
# message only in its own round. Wait for every send and receive before `all_reduce` returns: the caller may change
# `buffer` at once. Do not use collectives of `dist` here; they come in the next sections.


# %% solve="ring"
def all_reduce(dist, buffer):
    """Every rank's buffer, added up in place on every rank."""
    ### BEGIN SOLUTION
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * len(buffer) // count for at in range(count + 1)]

    def exchange(out, into, *, adds):
        out, into = out % count, into % count
        work, size = None, bounds[into + 1] - bounds[into]
        if bounds[out + 1] > bounds[out]:
            work = dist.isend(buffer[bounds[out] : bounds[out + 1]], right)
        if size:
            mine = buffer[bounds[into] : bounds[into + 1]]
            theirs = dist.empty(size, dtype=buffer.dtype) if adds else mine
            dist.recv(theirs, left)
            if adds:
                dist.add(mine, theirs)
                dist.free(theirs)
        if work:
            work.wait()

    for turn in range(count - 1):
        exchange(rank - turn, rank - turn - 1, adds=True)
    for turn in range(count - 1):
        exchange(rank + 1 - turn, rank - turn, adds=False)
    ### END SOLUTION


# %% check="ring"
check("ring")

# %%
with requires_solution("ring"):

    def in_a_ring(dist):
        all_reduce(dist, dist.tensor(gradient_bytes // 4, name="gradients"))

    fast = VirtualCluster.flat(ranks, **link).run(in_a_ring)
    print(f"modelled, over rank 0: {seconds(slow.makespan_s)}")
    print(f"modelled, in a ring:   {seconds(fast.makespan_s)}")
    sent = max(use.sent_bytes for use in fast.links)
    print(f"each rank sends {byte_count(sent)} for {byte_count(gradient_bytes)}")
    figure, axes = style.subplots(figsize=(9, 3))
    axes = fast.timeline.plot(axes)

# %% [markdown]
# All links are busy from the first round to the last. With twice as many ranks, the sum would hardly take longer, and
# with twenty times as many only a third longer, because a rank always sends less than twice the buffer. Only the
# number of *rounds* grows, and each round costs α.

# %% [markdown]
# **The same in torch.** This lab's `dist` is `torch.distributed` except for four names: `dist.empty(count)` is
# `torch.empty(count)`, `dist.add(x, y)` is `x.add_(y)`, `dist.copy(x, y)` is `x.copy_(y)`, and `dist.free(x)` is `del
# x`. With these names, your own `all_reduce` runs on two processes, over gloo, which is torch's backend for CPUs:


# %%
def torch_names():
    """What this lab calls `dist`, in plain torch."""
    from types import SimpleNamespace

    import torch.distributed as dist

    same = ("get_rank", "get_world_size", "send", "recv", "isend", "irecv")
    found = {name: getattr(dist, name) for name in same}
    found |= {"empty": torch.empty, "free": lambda x: None}
    found |= {"add": torch.Tensor.add_, "copy": torch.Tensor.copy_}
    found |= {"rank": dist.get_rank(), "world_size": dist.get_world_size()}
    return SimpleNamespace(**found)


# %%
def ring_in_torch():
    """Your all_reduce of 4 MB, and torch's."""
    import torch.distributed as dist

    x = torch.full((1_000_000,), dist.get_rank() + 1.0)
    all_reduce(torch_names(), x)
    assert (x == 3).all(), "the sum of 1 and 2 must be 3 on both ranks"
    yours = lambda: all_reduce(torch_names(), x)  # noqa: E731
    return {"yours": yours, "torch's": lambda: dist.all_reduce(x)}


# %%
with requires_solution("ring"):
    recorded = "recorded on 2 busy cores: the author's 6.35 ms, torch's 3.04 ms"
    in_torch(ring_in_torch, ranks=2, uses=(all_reduce, torch_names), told=recorded)

# %% [markdown]
# ## 2. Which algorithm?
#
# A ring is not the only algorithm. A **tree** sums pairs, then pairs of pairs. It takes `log2 P` rounds (rounded up to
# a whole number) up the tree and as many back down, each with the *whole* message. Gradients take megabytes; a loss or
# a norm takes four bytes.
#
# **Predict:** with 8 ranks and links of 20 µs and 6 GB/s, up to which message size is the tree cheaper than the ring?
# And with 64 ranks, how long does each take for 1 kB?

# %%
predict("crossing", "With 8 ranks, the tree is cheaper up to", unit="kB")
predict("ring_of_64", "A ring of 64 ranks sums 1 kB in", unit="ms")
predict("tree_of_64", "A tree of 64 ranks sums 1 kB in", unit="ms")


# %%
def summed(count, size, algorithm, machine=None):
    """Seconds of an all_reduce of `size` bytes, modelled."""
    cluster = VirtualCluster(machine) if machine else VirtualCluster.flat(count, **link)

    def program(dist):
        dist.all_reduce(dist.tensor(size, dtype="int8"), algorithm=algorithm)

    return cluster.run(program).makespan_s


# %%
with reveal_prediction("crossing", "ring_of_64", "tree_of_64") as truth:
    low, high = 1, 1 << 24
    while high - low > 1:
        size = (low + high) // 2
        is_tree = summed(8, size, "tree") < summed(8, size, "ring")
        low, high = (size, high) if is_tree else (low, size)
    print(f"modelled: with 8 ranks, tree and ring cross at {byte_count(high)}")
    of_64 = {name: summed(64, 1000, name) for name in ("ring", "tree")}
    for name, took in of_64.items():
        print(f"modelled: with 64 ranks, 1 kB takes {seconds(took)} in a {name}")
    truth(crossing=high, ring_of_64=of_64["ring"], tree_of_64=of_64["tree"])

# %% [markdown]
# The tree has few rounds, and the ring sends few bytes. *Halving-doubling* does both, if the number of ranks is a power
# of two. If nodes have fast links inside and slow links between them, a *hierarchical* sum sends as little as possible
# between nodes.
#
# Write `price(algorithm, job)` → seconds of an all-reduce, and `pick(job)` → the cheapest of the four names in
# `ALGORITHMS` (any of them if several cost the same). A job is a dict with `nodes`, `ranks_per_node` (P is their
# product), `message_bytes` (n, of each rank), the links `inside` a node and `between` nodes, each with `alpha_s` and
# `byte_per_s`, and `sum_byte_per_s`. In a round every message costs α + its bytes / rate, and all messages are sent at
# the same time. Adding up bytes on arrival takes additional time: the number of bytes / `sum_byte_per_s`.
#
# | algorithm | first half: what arrives is added up | second half: nothing is added |
# |---|---|---|
# | `ring` | P - 1 rounds of n/P | the same |
# | `tree` | log2 P rounds (rounded up) of n | the same |
# | `halving-doubling` | rounds of n/2, n/4, … n/P | the same |
# | `hierarchical` | a ring in each node, then a ring across the nodes with a rank's n/`ranks_per_node` | the same |
#
# A round is as slow as its slowest message, and links between nodes are always the slower ones. In a ring over
# several nodes at least one message crosses in every round, so every round is priced on the links between nodes. In a
# tree and in halving-doubling the distance to the partner doubles from round to round, 1, 2, 4, … (and halves again
# in the second half). The ranks of a node have consecutive numbers, and if there are several nodes, the number of
# ranks in each is a power of two. So a round whose distance is below `ranks_per_node` stays inside a node. Any other
# round is priced on the links between nodes.
#
# Only halving-doubling needs a power of two. If P is not one, let Q be the largest power of two below P. First the
# ranks beyond Q send everything to their partner at distance Q, which adds it; at the end they get the sum back. Each
# of these two steps is a round of n. In between, only Q ranks take part.
#
# You may call any function of `edl_labs.virtual.cluster`, but none of them includes the time for adding up.

# %% given
ALGORITHMS = ("ring", "tree", "halving-doubling", "hierarchical")


# %% solve="pick_collective"
def price(algorithm, job):
    """Seconds of an all-reduce by one of ALGORITHMS."""
    ### BEGIN SOLUTION
    size, each, nodes = job["message_bytes"], job["ranks_per_node"], job["nodes"]
    count = each * nodes

    def both_ways(times, part, *, inside):
        over = job["inside" if inside else "between"]
        message_s = over["alpha_s"] + part * size / over["byte_per_s"]
        return times * (2 * message_s + part * size / job["sum_byte_per_s"])

    if algorithm == "ring":
        return both_ways(count - 1, 1 / count, inside=nodes == 1)
    if algorithm == "hierarchical":
        within_s = both_ways(each - 1, 1 / each, inside=True)
        return within_s + both_ways(nodes - 1, 1 / count, inside=False)
    if algorithm == "tree":
        parts = [1] * (count - 1).bit_length()
    else:
        parts = [0.5**turn for turn in range(1, count.bit_length())]
    total_s = sum(
        both_ways(1, part, inside=2**turn < each) for turn, part in enumerate(parts)
    )
    beyond = algorithm != "tree" and count > 2 ** len(parts)
    return total_s + (both_ways(1, 1, inside=nodes == 1) if beyond else 0.0)
    ### END SOLUTION


def pick(job):
    """The name of the cheapest algorithm."""
    ### BEGIN SOLUTION
    return min(ALGORITHMS, key=lambda name: price(name, job))
    ### END SOLUTION


# %% check="pick_collective"
check("pick_collective")

# %% [markdown]
# Take two nodes of eight H100s, with the links from the hardware table: 450 GB/s and an α of 3.4 µs inside, 50 GB/s per
# GPU and 14 µs between; adding up is fast. **Predict:** for 100 MB, a ring of all 16 ranks takes how many times as long
# as the fastest of the four algorithms?

# %%
predict("two_nodes", "Compared with the fastest, the ring takes", unit="times")

# %%
with requires_solution("pick_collective"), reveal_prediction("two_nodes") as truth:
    machine = ClusterMachine.of("8xH100", nodes=2)
    inside, between = (
        {"alpha_s": one.alpha_s, "byte_per_s": one.byte_per_s} for one in machine.levels
    )
    job = {"nodes": 2, "ranks_per_node": 8, "inside": inside, "between": between}
    job |= {"sum_byte_per_s": 1e12}
    for size in (1_000, 100_000_000):
        job["message_bytes"] = size
        priced = {name: price(name, job) for name in ALGORITHMS}
        told = ", ".join(f"{name} {seconds(took)}" for name, took in priced.items())
        print(f"modelled, {byte_count(size)}: {told}")
    truth(priced["ring"] / min(priced.values()))

# %% [markdown]
# Now plot your own `price` over all sizes: one node of 12 ranks, and the two nodes from before.

# %%
with requires_solution("pick_collective"):
    figure, (one_node, two_nodes) = style.subplots(1, 2, figsize=(9.5, 3.5))
    lengths = [10 ** (at / 4) for at in range(8, 37)]
    for axes, size in ((one_node, (1, 12)), (two_nodes, (2, 8))):
        here = {**job, "nodes": size[0], "ranks_per_node": size[1]}
        for name, line in zip(ALGORITHMS, ("-", "--", "-.", ":"), strict=True):
            took = [price(name, {**here, "message_bytes": n}) for n in lengths]
            axes.loglog(lengths, took, line, label=name)
        axes.set(title=f"{size[0]} x {size[1]} ranks", xlabel="bytes")
    one_node.set_ylabel("seconds (modelled)")
    one_node.legend()

# %% [markdown]
# On one node the size decides: small messages need few rounds, large ones few bytes. Between two nodes halving-doubling
# wins at every size: in each half, only one of its four rounds crosses, with a sixteenth of the message. Hierarchical
# comes within 4 % for large messages, but pays more α's inside. This is also why "the bandwidth of our network" has no
# single value.
#
# NCCL chooses for you, from a table of latencies and bandwidths by size and topology, but its set of algorithms differs
# from these four. It has no halving-doubling. It runs one ring for each channel, over all ports of a node at once: with
# eight ports, 16 GPUs take about 0.5 ms for 100 MB (modelled), not the 4 ms of your single ring over one port. Its tree
# consists of two binary trees that send the message in pieces, not whole in each round. Between two nodes it often uses
# that tree, or lets the NVLink switch do the adding (NVLS).

# %% [markdown]
# ## 3. Buckets: hide the sums behind the backward pass
#
# The gradients of the *last* layer are ready first, long before those of the first layer. So they can be sent while the
# rest is computed. Deck [004] draws its roofline as if everything overlapped: the step takes the *larger* of the times
# for computing and sending. But on that slide the new weights are sent, which no rank has before the update. Then
# nothing overlaps, and the step takes the *sum* of both. Your step will take a time between the two, and you decide
# which.
#
# **Predict:** a model has 400 tensors, and 8 ranks form a ring with α = 20 µs. If every tensor's gradient is summed
# separately, how much time do the α's alone cost?

# %%
predict("alphas", "The alphas of 400 sums take", unit="ms")


# %% given
def summing_s(link, size):
    """Seconds of a ring all-reduce of `size` bytes."""
    rounds = 2 * (link["ranks"] - 1)
    return rounds * (link["alpha_s"] + size / link["ranks"] / link["byte_per_s"])


# %%
with reveal_prediction("alphas") as truth:
    alphas_s = 400 * summing_s({"ranks": 8, **link}, 0)
    print(f"modelled: {seconds(alphas_s)} for 400 empty sums")
    truth(alphas_s)

# %% [markdown]
# A few large sums pay few α's, but leave little computation to hide them behind. Many small sums are easy to hide, but
# each pays its own α's. `bucket_cap_mb` of `DistributedDataParallel` sets this trade-off: 25 MiB by default, and 1 MiB
# for the first bucket, so that the link starts early. This cap depends neither on your links nor on your layers. Write
# two functions:
#
# * `plan_buckets(layers, link)` → lists of layer numbers, in the order in which they are sent. Within each list, too,
#   they go from the last layer to the first, as in `[[5, 4], [3], [2, 1, 0]]`. A layer is a dict with `gradient_bytes`
#   and `backward_s`; `link` has `ranks`, `alpha_s` and `byte_per_s`. `summing_s(link, size)` gives the seconds of a
#   sum; sums run one after the other. The gradients are stored in one buffer, those of the last layer first, so the
#   layers of a bucket must be neighbours.
# * `run_step(dist, model, groups)` issues a rank's step: `model.backward(i)` for every layer, from the last to the
#   first, and `model.update()` once. `model.bucket(numbers)` gives the tensor with the gradients of these layers. Pass
#   it to `dist.all_reduce(tensor, async_op=True, algorithm="ring")`, which returns a handle. Its `wait()` makes
#   everything issued *afterwards* wait for that sum, and so for all sums before it.
#
# All gradients must have been summed by the time the update reads them. The step may take at most 3 % longer than with
# the best groups.


# %% solve="buckets"
def plan_buckets(layers, link):
    """Groups of layers, in the order in which they are sent."""
    ### BEGIN SOLUTION
    order = list(reversed(range(len(layers))))
    best, ready_s = [(0.0, [])], 0.0
    for stop in range(1, len(order) + 1):
        ready_s += layers[order[stop - 1]]["backward_s"]
        found = []
        for start in range(stop):
            over_s, groups = best[start]
            size = sum(layers[number]["gradient_bytes"] for number in order[start:stop])
            ends_s = max(over_s, ready_s) + summing_s(link, size)
            found.append((ends_s, [*groups, order[start:stop]]))
        best.append(min(found))
    return best[-1][1]
    ### END SOLUTION


def run_step(dist, model, groups):
    """Backward pass, sums of all groups, update."""
    ### BEGIN SOLUTION
    works = []
    for group in groups:
        for number in group:
            model.backward(number)
        ready = model.bucket(group)
        works.append(dist.all_reduce(ready, async_op=True, algorithm="ring"))
    for work in works:
        work.wait()
    model.update()
    ### END SOLUTION


# %% check="buckets"
check("buckets")

# %% [markdown]
# **Predict:** a model has `blocks` blocks, each with a layer of 8 MB and one of 32 kB. If all gradients were summed in
# one bucket, the sum would take as long as the backward pass. With your groups, how much of the time for sums is
# *exposed* (not hidden), as a percentage of the backward pass?

# %%
predict("exposed", "With my groups, the exposed share is", unit="%")


# %% given
class Model:
    """A rank's model, as run_step drives it."""

    def __init__(self, dist, layers):
        self.dist, self.layers = dist, layers
        self.starts, total = {}, 0
        for number in reversed(range(len(layers))):
            self.starts[number] = total
            total += layers[number]["gradient_bytes"] // 4
        self.gradients = dist.tensor(total, name="gradients")

    def backward(self, number):
        lasts = self.layers[number]["backward_s"]
        part = self.bucket([number])
        self.dist.launch(f"backward {number}", duration_s=lasts, writes=part)

    def bucket(self, numbers):
        first, last = min(numbers), max(numbers)
        size = self.layers[first]["gradient_bytes"] // 4
        return self.gradients[self.starts[last] : self.starts[first] + size]

    def update(self):
        self.dist.launch("update", duration_s=1e-3, reads=self.gradients)


# %%
wire = {"ranks": ranks, **link}
sizes = [size for _ in range(blocks) for size in (8_000_000, 32_000)]
backward_s = summing_s(wire, sum(sizes)) / len(sizes)
layers = [{"gradient_bytes": size, "backward_s": backward_s} for size in sizes]


# %%
def replayed(groups):
    """The step of all ranks with these groups, modelled."""
    cluster = VirtualCluster.flat(ranks, **link)
    return cluster.run(lambda dist: run_step(dist, Model(dist, layers), groups))


# %%
with requires_solution("buckets"), reveal_prediction("exposed") as truth:
    backwards = [*range(len(layers))][::-1]
    plans = {"one bucket": [backwards], "one per layer": [[one] for one in backwards]}
    # Caps of 1 MiB, then of 25 MiB: a bucket closes with the layer that reaches it.
    rest = range(2, len(sizes), 8)
    plans["DDP's"] = [backwards[:2], *(backwards[at : at + 8] for at in rest)]
    plans["best groups"] = plan_buckets(layers, wire)
    for name, groups in plans.items():
        run = replayed(groups)
        exposed_s = run.timeline.exposed_s(0)
        share = exposed_s / (backward_s * len(layers))
        print(f"modelled: {name}: {seconds(run.makespan_s)}, {share:.1%} exposed")
    truth(share)
    figure, axes = style.subplots(figsize=(9, 3))
    axes = run.timeline.plot(axes)

# %% [markdown]
# The best groups begin small and grow: the link starts early, and there are few sums, so there are few rounds to pay
# for. Here the link is busy nearly to the end, since all sums together take as long as the backward pass. With faster
# links only the last bucket would be exposed, and that bucket would have to be small. DDP begins small too, but its
# caps are fixed (newer versions accept one cap per bucket, as `bucket_cap_mb_list`). In a live notebook, drag the
# sliders for the ranks, the cap and the link:

# %%
BucketExplorer(
    [(layer["gradient_bytes"], layer["backward_s"]) for layer in layers],
    ranks=ranks,
    **link,
)

# %% [markdown]
# **The same in torch.** `DistributedDataParallel` does what your `run_step` does. A hook on each parameter notices that
# its gradient is ready (`model.backward(i)` has run). When the last gradient of a bucket (`model.bucket(numbers)`) is
# ready, it calls `dist.all_reduce(bucket, async_op=True)`; `backward()` waits for all handles before it returns. You
# only set the cap of the groups. (Two processes on one computer have no link between them, so caps hardly matter here.)


# %%
def buckets_in_torch():
    """Forward and backward through 16 layers of 1 MB, by cap."""
    from torch.nn.parallel import DistributedDataParallel

    def step_with(cap_mb):
        layers = [torch.nn.Linear(512, 512, bias=False) for _ in range(16)]
        net = torch.nn.Sequential(*layers)
        ddp = DistributedDataParallel(net, bucket_cap_mb=cap_mb)
        return lambda: ddp(torch.ones(32, 512)).sum().backward()

    return {f"{cap_mb} MiB": step_with(cap_mb) for cap_mb in (0.5, 4, 1000)}


# %%
recorded = "recorded on 2 busy cores: 0.5 MiB 94.3 ms, 4 MiB 94.7 ms, 1000 MiB 83.8 ms"
in_torch(buckets_in_torch, ranks=2, told=recorded)

# %% [markdown]
# ## 4. Who hangs?
#
# **Predict:** each of 4 ranks sums three buffers, `a`, `b` and `c`, of equal length. Rank 3 skips its sum of `b`,
# because its batch was empty. Is a sum of `b` wrong, does the program hang, or both?

# %%
predict(
    "left_out",
    "What happens is",
    choices=("a hang at b", "a wrong b, then a hang", "only a wrong b"),
)


# %%
def three_sums(dist):
    for name in "abc":
        x = dist.tensor(1000, name=name)
        if name != "b" or dist.rank != 3:
            dist.all_reduce(x, name=name)


# %%
with reveal_prediction("left_out") as truth:
    stuck = VirtualCluster.flat(4).run(three_sums)
    print(f"rank 0's b: {stuck.contents(0, 'b')[0]}")
    print(stuck)
    mixed = any(term.source == "c" for term in stuck.contents(0, "b")[0].terms)
    said = "a wrong b, then a hang" if mixed else "a hang at b"
    truth(said if stuck.hang else "only a wrong b")

# %% [markdown]
# A collective has no name on the wire: within a group, a rank's *n-th call* is matched with the n-th call of every
# other member. So a rank that takes a different path first corrupts sums; the hang comes later, somewhere else. On a
# real cluster nothing is printed then: the device is 100 % busy (it waits in a kernel), and after ten minutes or more a
# watchdog ends the job and logs what each rank was last seen doing. Here you learn to read that log.
#
# Write `who_hangs(groups, ranks)` → `(answer, rank)`. `groups` maps names to members. `ranks` is a list of dicts with
# `doing` (`"waits"`, `"computes"`, `"ended"` or `"no sign"`) and `calls`, the rank's most recent calls, latest last.
# Each call is a dict with `group`, `number` (its position among that group's calls), `call`, `numel` and `done`. A
# waiting rank waits in its last call. Calls with the same group and the same number *meet*. Test these conditions in
# order; the first that holds is the answer, and exactly one rank is at fault:
#
# 1. `"other call"`: of the calls that meet, one rank's call is different from the others' (then at least three ranks
#    meet).
# 2. `"other size"`: of the calls that meet, one rank's call is the same as the others', but has a different `numel`.
# 3. `"lost"`: a rank that others wait for gives no sign.
# 4. `"ended early"`: a rank that others wait for has reached the end of its program.
# 5. `"only slow"`: a rank that others wait for is still computing.
# 6. `"crossed groups"`: all wait for each other, in two groups. Of the ranks that are in both groups, one made these
#    calls in a different order from the rest.
#
# A call waits only for members of its group, and calls that are `done` have already met. For example, rank 2 of a run
# may look like this. It waits in its group's call number 13 until ranks 0, 1 and 3 make theirs:
#
#     groups   {"world": [0, 1, 2, 3, 4, 5, 6, 7], "tensor": [0, 1, 2, 3]}
#     ranks[2] {"doing": "waits", "calls": [
#                {"group": "world", "number": 40, "call": "all_gather", "numel": 500, "done": True},
#                {"group": "tensor", "number": 13, "call": "all_reduce", "numel": 900, "done": False}]}
#
# Guessing earns nothing: points start above the score that chance would give.


# %% solve="who_hangs"
def who_hangs(groups, ranks):
    """What keeps the ranks waiting, and the rank at fault."""
    ### BEGIN SOLUTION
    meetings = {}
    for number, state in enumerate(ranks):
        if state["doing"] == "waits":
            latest = state["calls"][-1]
            key = latest["group"], latest["number"]
            meetings.setdefault(key, {})[number] = latest
    for part, answer in (("call", "other call"), ("numel", "other size")):
        for there in meetings.values():
            found = [call[part] for call in there.values()]
            if len(set(found)) > 1:
                odd = min(found, key=found.count)
                return answer, next(r for r in there if there[r][part] == odd)
    absent = [
        member
        for (name, _), there in meetings.items()
        for member in groups[name]
        if member not in there
    ]
    words = {"no sign": "lost", "ended": "ended early", "computes": "only slow"}
    for doing, answer in words.items():
        for member in absent:
            if ranks[member]["doing"] == doing:
                return answer, member
    both = set.intersection(*(set(groups[name]) for name, _ in meetings))
    return "crossed groups", min(
        ([*both & set(m)] for m in meetings.values()), key=len
    )[0]
    ### END SOLUTION


# %% check="who_hangs"
check("who_hangs")

# %% [markdown]
# Two habits keep you from ever needing this: no collective inside an `if` that can differ between ranks, and the same
# order of groups everywhere.

# %% [markdown]
# ## 5. The same program on real processes
#
# A recorded program can also run for real: `backend="gloo"` starts one process of `torch.distributed` for each rank on
# this machine, runs the program there, and compares the final content of every tensor with the replay. On a machine
# with several GPUs, `backend="nccl"` does the same. This takes half a minute. Unless you set `real_processes = True` at
# the top, your program is only replayed, and you see the result of the author's program on two processes. This section
# does not affect your points.

# %%
with requires_solution("ring"):

    def on_two_processes(dist):
        all_reduce(dist, dist.tensor(1001, name="gradients"))

    pair = VirtualCluster.flat(2)
    if real_processes:
        real = pair.run(on_two_processes, backend="gloo", ranks=2).real
        told = f"{real.ranks} processes, {real.elements} elements as replayed"
        print(f"measured here: {told}")
    else:
        pair.run(on_two_processes).require_finished()
        print("your program finishes in the replay; it did not run on real processes")
        print("recorded, the author's: 2 processes, 2002 elements as replayed")

# %% [markdown]
# Each of two ranks has 1001 elements, and all 2002 equal those of the replay. The *time* measures nothing useful: two
# processes on one CPU have no link between them, and most of the seconds go into starting them. The real run checks
# that the program is correct; the model says how fast it is.

# %% [markdown]
# ## Practice: fit a link
#
# What follows is optional and carries no points. Which links does a node have? A processor's PCIe *root complex* has
# lanes, 16 per slot; *switches* let several GPUs and network cards (NICs) share them. `nvidia-smi topo -m` prints the
# path between every two devices (here written by hand, without the CPU columns):
#
# ```text
#        GPU0   GPU1   GPU2   GPU3   NIC0   NIC1
# GPU0    X     NV12   NV12   NV12   PIX    SYS
# GPU1   NV12    X     NV12   NV12   PIX    SYS
# GPU2   NV12   NV12    X     NV12   SYS    PIX
# GPU3   NV12   NV12   NV12    X     SYS    PIX
# ```
#
# `NV12` is a bond of twelve NVLinks. `PIX` goes through one PCIe switch, `PXB` through several, `PHB` through the root
# complex; `NODE` joins two root complexes of one processor, and `SYS` crosses from one processor to the other.
#
# **Predict:** GPU 2 sends to another node. Which network card does it use?

# %%
predict("which_card", "GPU 2 should send through", choices=("NIC0", "NIC1"))

# %%
with reveal_prediction("which_card") as truth:
    print("NIC1 is one switch away (PIX); NIC0 is on the other processor (SYS)")
    truth("NIC1")

# %% [markdown]
# You get α and the rate of a link from a table of measured messages: times for sizes from 8 B to 256 MiB, each with 2 %
# noise. Write
#
# * `fit(sizes, took_s)` → `(alpha_s, byte_per_s, half_bytes)`: α within 10 %, the rate within 5 %, and the size at
#   which a message gets half of the rate;
# * `bus_rate(ranks, size, took_s)`: what nccl-tests calls the *bus bandwidth* of an all-reduce. This is the number of
#   bytes that a link must carry in a ring, divided by the time. You can compare it with the link's own rate, whatever
#   the number of ranks.


# %% solve="fit_a_link"
def fit(sizes, took_s):
    """Alpha in seconds, bytes per second, and the size that gets half of that."""
    ### BEGIN SOLUTION
    rows = [(1 / took, size / took) for size, took in zip(sizes, took_s, strict=True)]
    xx, xy = sum(x * x for x, _ in rows), sum(x * y for x, y in rows)
    yy, sx = sum(y * y for _, y in rows), sum(x for x, _ in rows)
    sy = sum(y for _, y in rows)
    below = xx * yy - xy * xy
    alpha_s, byte_s = (sx * yy - sy * xy) / below, (sy * xx - sx * xy) / below
    return alpha_s, 1 / byte_s, alpha_s / byte_s
    ### END SOLUTION


def bus_rate(ranks, size, took_s):
    """Bytes per second that a link carries in a ring all-reduce."""
    ### BEGIN SOLUTION
    return 2 * (ranks - 1) / ranks * size / took_s
    ### END SOLUTION


# %% check="fit_a_link"
check("fit_a_link")

# %% [markdown]
# ## Practice: accumulate gradients, and send them once
#
# With gradient accumulation on several ranks, `DistributedDataParallel` sends after every micro-batch unless you tell
# it not to: inside `with ddp.no_sync():` gradients stay local. The *forward* pass decides whether gradients are sent.
# DDP divides the sum by the number of ranks, so you get the mean.
#
# Write `train(ddp, batches, window)`, which every rank runs: one step for each window of micro-batches (and for those
# left over at the end), and one all-reduce for each step. `ddp(batch)` gives the **sum** of the losses of this rank's
# tokens; you can multiply it, divide it, and call its `backward()`. There are also `ddp.zero_grad()`, `ddp.step()` and
# `ddp.world_size`. A batch is a dict with two counts: `tokens` on this rank, and `tokens_everywhere`, on all ranks. In
# each step every token of the window, on any rank, must have the same weight: one over the number of all these tokens.


# %% solve="no_sync"
def train(ddp, batches, window):
    """One step for each window, each with one all-reduce."""
    ### BEGIN SOLUTION
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        weight = ddp.world_size / sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        with ddp.no_sync():
            for batch in part[:-1]:
                (ddp(batch) * weight).backward()
        (ddp(part[-1]) * weight).backward()
        ddp.step()
    ### END SOLUTION


# %% check="no_sync"
check("no_sync")

# %% [markdown]
# ## Practice: a batch norm over all ranks
#
# A batch norm uses only the rows of its own rank, and with two rows per rank its mean and variance are noise. A
# *synchronised* batch norm needs little from the other ranks: a few numbers per channel, in **one** collective forward
# and **one** backward. Write, without autograd,
#
# * `normalise(x, running, comm, momentum=..., eps=...)` → `(y, running, kept)`. `x` has shape (rows of this rank,
#   channels), in float64; ranks may have unequal numbers of rows, but at least one. `y` is `(x - mean) / sqrt(variance
#   + eps)`, with the mean and the biased variance of the rows of *all* ranks. `running` is the previous pair `(mean,
#   variance)`. It becomes `(1 - momentum) * old + momentum * new`, where the new variance is the unbiased one (sum of
#   squared deviations divided by the count minus one). `kept` is whatever `go_back` needs.
# * `go_back(gradient, kept, comm)` → the gradient of this rank's `x`, given that of its `y`. Each `y` depends on every
#   `x` of all ranks, through mean and variance. Let `Σ` be the sum over all N rows, and `s` the factor by which `x -
#   mean` was multiplied. Then the gradient is `s * (g - Σg / N - y * Σ(g * y) / N)`, channel by channel.
#
# `comm.all_gather(tensor)` gives the list of all ranks' tensors, which have the same shape; `comm.all_reduce(tensor)`
# gives their sum. Values may be near 100 000 with a deviation of 0.01. Squares of such numbers differ only in their
# last digits.


# %% solve="sync_batch_norm"
def normalise(x, running, comm, *, momentum, eps):
    """(y, running, kept) of one rank, with the statistics of all ranks' rows."""
    ### BEGIN SOLUTION
    count = torch.full_like(x[0], len(x))
    parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
    counts, means, spreads = torch.stack(parts).unbind(1)
    total = counts.sum(0)
    mean = (counts * means).sum(0) / total
    variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
    scale = (variance + eps).rsqrt()
    y = (x - mean) * scale
    batch = mean, variance * total / (total - 1)
    after = [
        old + momentum * (new - old) for old, new in zip(running, batch, strict=True)
    ]
    return y, tuple(after), (y, scale, total)
    ### END SOLUTION


def go_back(gradient, kept, comm):
    """The gradient of a rank's x."""
    ### BEGIN SOLUTION
    y, scale, total = kept
    sums = (
        comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
    )
    return scale * (gradient - sums[0] - y * sums[1])
    ### END SOLUTION


# %% check="sync_batch_norm"
check("sync_batch_norm")

# %% [markdown]
# `torch.nn.SyncBatchNorm` does this, with these two collectives, and `convert_sync_batchnorm` puts it into a model. It
# costs α twice per layer, with no computation to hide it behind, because the next layer needs `y`.

# %% [markdown]
# ## Where you are

# %%
Progress("lab07_many_gpus")
