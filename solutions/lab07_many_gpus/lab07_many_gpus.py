# %% [markdown]
# # Many GPUs: who sends what, when
#
# Eight GPUs are eight times as fast, less what they spend on telling each other things. Who tells whom, how much, and
# *when*, decides whether that is 2 % or 70 %. It also decides whether the job runs at all: a *rank* is one of the
# processes, with one GPU, and a single rank whose calls come in another order than the others' stops a thousand of
# them. You usually learn it on a rented cluster. Here every rank's program is recorded and replayed: each byte, each
# wait, each wrong sum is seen, on a laptop, exactly.
#
# After this lab you can
#
# * price a message and a collective, and pick the algorithm for a size and a cluster;
# * write an all-reduce that is right, fast and never hangs, and hide it behind the backward pass;
# * say from the state of all ranks which of them keeps the others waiting, and why.
#
# Models that fit on no single GPU are lab07b's.
#
# **About 158 minutes (estimated)**, in two sittings: the first ends with section 2. Practice gives no points; it takes
# another 72 minutes (estimated), in any order.
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
# Neither a GPU nor a second process is needed: what would be on GPUs is modelled and says so. *Write your prediction
# down* before you run the next cell: where there is a box (a number, with or without its unit, Enter), the result
# appears next to it, and not before. Lecture slides are quoted by deck: [002] software perspective, [004] deep
# learning, hopefully faster. `hint("ring")` gives the hints of an exercise, one at a time.
#
# A check that fails shows the first case that is not right, and what your code gave; `case("ring")` gives that case's
# inputs as Python values, to try your code on.

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
# ## 1. One sum, in everybody's hands
#
# In data parallel training every GPU (*rank*) has the same weights and its own part of the batch. After the backward
# pass each has its own gradients; what all need is their **sum**. That is an *all-reduce*, and most of what follows is
# about it.
#
# A message of `n` bytes takes `α + n / rate`: `α` before its first byte, then bytes. Deck [004]'s link has 6 GB/s; say
# α = 20 µs. On a `VirtualCluster` each rank runs the same program, `dist` has the names of `torch.distributed`, and a
# tensor is its size: nothing is computed, but every byte is followed.
#
# **Predict:** every rank sends its 100 MB of gradients to rank 0, which adds them up and sends the sum back to each.
# How long does it take? A rank sends one message at a time, and receives one at a time.

# %%
predict("at_one_rank", f"With {ranks} ranks, all over rank 0 take", unit="ms")


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
# One rank's link is busy all the time, and the others wait: with twice as many ranks it takes twice as long. In a
# **ring** every rank sends to its right neighbour and receives from its left one, *all at once*, a chunk of one P-th of
# the buffer in each round:
#
# * `P - 1` rounds *reduce and scatter*: each chunk goes round and collects every rank's part, so that in the end each
#   rank has one finished chunk;
# * `P - 1` rounds *gather*: the finished chunks go round, and replace what is there.
#
# Every rank sends `2(P - 1)/P` of the buffer, however many ranks there are. Deck [004] asks how large the whole batch N
# must be for two nodes to compute as long as they send: `N/4` FLOP/B against its network ridge of 1000, so 4000
# samples, 2000 a node. With P ranks in a ring it is `N/(4(P - 1))`: 4000 more for each rank that joins.
#
# Two things go wrong in nearly every first ring, and neither shows on a single GPU. What does this program do?


# %%
def everybody_sends_first(dist):
    x, y = dist.tensor(8, name="x"), dist.empty(8, name="y")
    dist.send(x, (dist.rank + 1) % dist.world_size)
    dist.recv(y, (dist.rank - 1) % dist.world_size)


# %%
print(VirtualCluster.flat(3).run(everybody_sends_first))


# %% [markdown]
# A `send` goes on when a rank receives, and no rank does. With `isend` and `irecv` the rank goes on at once; what it
# may touch, and when, is then up to you:


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
# Write `all_reduce(dist, buffer)`, which one rank runs, for any number of ranks and any length. Of `dist` you need
#
# | call | does |
# |---|---|
# | `dist.get_rank()`, `dist.get_world_size()` | who am I, and of how many? |
# | `dist.send(x, dst)`, `dist.recv(x, src)` | go on when the message has been received |
# | `dist.isend(x, dst)`, `dist.irecv(x, src)` | start it, and give back a work whose `wait()` waits |
# | `dist.empty(count, dtype=buffer.dtype)`, `dist.free(x)` | memory of its own |
# | `dist.add(x, y)`, `dist.copy(x, y)` | `x += y` and `x = y`, for equally many elements |
# | `buffer[start:stop]`, `len(buffer)` | a part of it (never an empty one), and its elements |
#
# In the end every element holds each rank's own exactly once, on every rank. No rank sends more than `2(P - 1)` chunks
# (chunks are rounded up), and it takes at most 2 % longer than a ring. A chunk that is still on its way must not be
# touched, on neither side. Messages of a link go one by one, in the order in which both their sides were there (at one
# instant, those of lower ranks first), and none overtakes another. Posted all at once, they may wait in that order
# while another link is free: so post a message in its round. When `all_reduce` ends, every send and receive has been
# waited for: the caller may change `buffer` at once. Collectives of `dist` are for the sections after this one.


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
    print(f"each rank sends {byte_count(sent)} of {byte_count(gradient_bytes)}")
    figure, axes = style.subplots(figsize=(9, 3))
    axes = fast.timeline.plot(axes)

# %% [markdown]
# All links are busy from the first round to the last. With twice as many ranks it would take hardly longer, with twenty
# times as many a third longer: the number of bytes stays below twice the buffer. What grows is the number of *rounds*,
# and each of them costs α.

# %% [markdown]
# **The same in torch.** This lab's `dist` is `torch.distributed` but for four names: `dist.empty(count)` is
# `torch.empty(count)`, `dist.add(x, y)` is `x.add_(y)`, `dist.copy(x, y)` is `x.copy_(y)`, and `dist.free(x)` is `del
# x`. With these, your own `all_reduce` runs on two processes, over torch's backend for processors, gloo:


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
    assert (x == 3).all(), "ranks with 1 and 2 do not get 3"
    yours = lambda: all_reduce(torch_names(), x)  # noqa: E731
    return {"yours": yours, "torch's": lambda: dist.all_reduce(x)}


# %%
with requires_solution("ring"):
    recorded = "recorded on 2 busy cores, the author's 6.35 ms, torch's 3.04 ms"
    in_torch(ring_in_torch, ranks=2, uses=(all_reduce, torch_names), told=recorded)

# %% [markdown]
# ## 2. Which algorithm?
#
# A ring is not the only way. A **tree** adds up in pairs, then pairs of pairs: `log2 P` rounds there (rounded up)
# and as many back, each with the *whole* message. A gradient has megabytes, a loss or a norm has four bytes.
#
# **Predict:** 8 ranks, links of 20 µs and 6 GB/s. Up to which size is the tree cheaper than the ring? And with 64
# ranks, how long does each take for 1 kB?

# %%
predict("crossing", "The tree is cheaper up to", unit="kB")
predict("ring_of_64", "A ring of 64 ranks sums 1 kB in", unit="ms")
predict("tree_of_64", "A tree of 64 ranks does so in", unit="ms")


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
    print(f"modelled: 8 ranks, the two cross at {byte_count(high)}")
    of_64 = {name: summed(64, 1000, name) for name in ("ring", "tree")}
    for name, took in of_64.items():
        print(f"modelled: 64 ranks, 1 kB: {name} {seconds(took)}")
    truth(crossing=high, ring_of_64=of_64["ring"], tree_of_64=of_64["tree"])

# %% [markdown]
# Few rounds, or few bytes. *Halving-doubling* has both, for a number of ranks that is a power of two; and where nodes
# have fast links inside and slow ones between them, a *hierarchical* sum lets as little as possible cross.
#
# Write `price(algorithm, job)` → seconds of an all-reduce, and `pick(job)` → the cheapest of the four names in
# `ALGORITHMS`. A job is a dict with `nodes`, `ranks_per_node` (P is their product), `message_bytes` (n, of each rank),
# the links `inside` a node and `between` nodes, each with `alpha_s` and `byte_per_s`, and `sum_byte_per_s`. In a round
# every message costs α + its bytes / rate, and all go at once; bytes that are *added up* on arrival cost
# bytes / `sum_byte_per_s` more.
#
# | algorithm | there, adding up what arrives | back, not adding |
# |---|---|---|
# | `ring` | P - 1 rounds of n/P | the same |
# | `tree` | log2 P rounds (rounded up) of n | the same |
# | `halving-doubling` | rounds of n/2, n/4, … n/P | the same |
# | `hierarchical` | a ring in each node; with what a rank then has, n/`ranks_per_node`, one of the nodes | the same |
#
# A round is as slow as its slowest message. In a ring of several nodes some message crosses in every round. In a tree
# and in halving-doubling the distance to the partner doubles, 1, 2, 4, …, from the first round to the last (and shrinks
# on the way back). Ranks of a node are neighbours, and several nodes have a power of two of them each: a round whose
# distance is below `ranks_per_node` stays inside, any other is priced on the links between.
#
# Halving-doubling alone needs a power of two. Where P is none, take the one below it, Q: the ranks beyond Q hand all
# they have to the partner at distance Q first, which adds it, and get the sum back in the end, a round of n each; in
# between there are Q ranks.
#
# You may call any function of `edl_labs.virtual.cluster`. None of them counts the adding up.

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
# Two nodes of eight H100, whose links the hardware table knows: 450 GB/s with an α of 3.4 µs inside, 50 GB/s for each
# GPU with 14 µs between; sums are fast. **Predict:** with 100 MB, a ring of all 16 takes how many times as long as the
# fastest of the four?

# %%
predict("two_nodes", "Of the fastest one's time the ring takes", unit="times")

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
# And over all sizes, from your own `price`: one node of 12 ranks, and the two of before.

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
# On one node the size decides: few rounds for small messages, few bytes for large ones. Between two nodes
# halving-doubling wins at every size: one round of four crosses, with a sixteenth of the message. Hierarchical comes
# within 4 % for large ones and pays more α's inside. It is also why "the bandwidth of our network" has no single value.
#
# NCCL chooses for you, from a table of latencies and bandwidths by size and topology; it has other algorithms. It has
# no halving-doubling. Its ring is one ring for each channel, over all ports of a node at once: with eight ports, 100 MB
# take 16 GPUs some 0.5 ms (modelled), not the 4 ms of your one ring over one port. Its tree is two binary trees that
# send in pieces, not the whole message each round, and between two nodes it often takes that tree, or lets the NVLink
# switch add up (NVLS).

# %% [markdown]
# ## 3. Buckets: sums behind the backward pass
#
# The gradients of the *last* layer are there first, long before those of the first one. So they can travel while the
# rest is computed. Deck [004] draws its roofline as if all of that overlapped: the step takes the *larger* of computing
# and sending. Its own slide then sends the new weights, which no rank has before the update, so that nothing overlaps:
# the *sum* of both. What you get lies in between, and you decide where.
#
# **Predict:** a model of 400 tensors, 8 ranks in a ring, α = 20 µs. How much do the α's alone cost when every tensor's
# gradient is summed on its own?

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
# Few large sums pay few α's, and leave nothing to hide behind; many small ones hide well and pay α each. That is what
# `bucket_cap_mb` of `DistributedDataParallel` trades off: 25 MiB unless you say otherwise, and 1 MiB for the first
# bucket, so that the link starts early. It knows neither your links nor your layers. Write two functions:
#
# * `plan_buckets(layers, link)` → lists of layers' numbers, in the order in which they are sent, from the last layer to
#   the first within a list too, such as `[[5, 4], [3], [2, 1, 0]]`. A layer is a dict with
#   `gradient_bytes` and `backward_s`; `link` has `ranks`, `alpha_s` and `byte_per_s`. `summing_s(link, size)` is what a
#   sum costs; sums go one after the other. The gradients lie in one buffer, those of the last layer first, so that a
#   bucket has layers that lie side by side.
# * `run_step(dist, model, groups)` issues the step of a rank: `model.backward(i)` for every layer, from the last to
#   the first, `model.update()` once; `model.bucket(numbers)` is the tensor with the gradients of these layers, for
#   `dist.all_reduce(tensor, async_op=True, algorithm="ring")`, which gives back a work. `work.wait()` makes what is
#   issued *afterwards* wait for it.
#
# All gradients must be summed when the update reads them, and the step may take 3 % longer than with the best groups.


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
# **Predict:** a model of `blocks` blocks, each with a layer of 8 MB and one of 32 kB, whose sums in one bucket would
# take as long as its backward pass. How much of the sums is left over, *exposed*, with your groups? Say it in per cent
# of the backward pass.

# %%
predict("exposed", "With my groups, exposed are", unit="%")


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
    plans = {"one bucket": [backwards], "one a layer": [[one] for one in backwards]}
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
# The best groups begin small and grow: the link is at work early, and few sums pay for their rounds. Here it is busy
# nearly to the end, since all sums take as long as the backward pass. With faster links the last bucket alone would be
# seen, and it would have to be the small one. DDP begins small too, but its caps are fixed (`bucket_cap_mb_list` of
# newer versions takes one for each bucket). In a live notebook, drag the ranks, the cap and the link:

# %%
BucketExplorer(
    [(layer["gradient_bytes"], layer["backward_s"]) for layer in layers],
    ranks=ranks,
    **link,
)

# %% [markdown]
# **The same in torch.** `DistributedDataParallel` is your `run_step`: a hook on each parameter sees that its gradient
# is there (`model.backward(i)` has run); with the last gradient of a bucket (`model.bucket(numbers)`) it calls
# `dist.all_reduce(bucket, async_op=True)`, and the end of `backward()` waits for the works. Of the groups you set the
# cap alone. (Two processes of one computer have no link between them, so caps hardly differ here.)


# %%
def buckets_in_torch():
    """A pass there and back through 16 layers of 1 MB, by cap."""
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
# **Predict:** each of 4 ranks sums three buffers, `a`, `b` and `c`, equally long. Rank 3 leaves out its sum of `b`, for
# its batch was empty. What happens?

# %%
predict(
    "left_out",
    "What happens is",
    choices=("a hang at b", "a wrong b, then a hang", "a wrong b alone"),
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
    truth(said if stuck.hang else "a wrong b alone")

# %% [markdown]
# A collective has no name on the wire: the *n-th call of a group* meets the n-th call of every other member. So one
# rank on another path spoils sums first and hangs later, somewhere else. On a real cluster nothing is printed then: the
# device is 100 % busy (it waits in a kernel), and after ten minutes or more a watchdog ends the job and writes what
# each rank was last seen doing. Reading that is the skill.
#
# Write `who_hangs(groups, ranks)` → `(answer, rank)`. `groups` maps names to members, `ranks` is a list of dicts with
# `doing` (`"waits"`, `"computes"`, `"ended"` or `"no sign"`) and `calls`, its last ones, the latest last: dicts with
# `group`, `number` (its place among that group's calls), `call`, `numel` and `done`. A rank that waits does so in the
# last of its calls. Calls *meet* that have one group and one number. Ask in this order; the first yes counts, and the
# rank is the one at fault:
#
# 1. `"other call"`: in a meeting, one rank makes another call than the rest.
# 2. `"other size"`: it makes the same call with another `numel`.
# 3. `"lost"`: a rank that others wait for gives no sign.
# 4. `"ended early"`: it has come to the end of its program.
# 5. `"only slow"`: it still computes.
# 6. `"crossed groups"`: all wait, in two groups, for each other. Of the ranks that are in both, one took these calls in
#    another order than the rest of them.
#
# Only members are waited for, and calls that are `done` have met already. So rank 2 of a run may look like this, and
# waits in its group's 13th call until ranks 0, 1 and 3 come:
#
#     groups   {"world": [0, 1, 2, 3, 4, 5, 6, 7], "tensor": [0, 1, 2, 3]}
#     ranks[2] {"doing": "waits", "calls": [
#                {"group": "world", "number": 40, "call": "all_gather", "numel": 500, "done": True},
#                {"group": "tensor", "number": 13, "call": "all_reduce", "numel": 900, "done": False}]}
#
# Guessing is worth nothing: points begin beyond what luck can bring.


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
# The two habits that keep you from ever needing it: no collective inside an `if` that can differ between ranks, and the
# same order of groups everywhere.

# %% [markdown]
# ## 5. The same program on real processes
#
# A program that was recorded can also run: `backend="gloo"` starts one process of `torch.distributed` for each rank, on
# this machine, plays the program there, and compares what every tensor holds in the end with the replay. On a machine
# with several GPUs, `backend="nccl"` does the same. It takes half a minute: unless you set `real_processes = True` at
# the top, your program is only replayed, and you see what the author's gave on two processes. Nothing of it counts for
# your points.

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
        print("your program: it ends in the replay, and ran on no processes")
        print("the author's, recorded: 2 processes, 2002 elements as replayed")

# %% [markdown]
# 1001 elements on each of two ranks, and all 2002 are what the replay said. The *time* is no measurement of anything:
# two processes on one CPU have no link between them, and starting them takes the seconds. Right is checked there, fast
# is modelled here.

# %% [markdown]
# ## Practice: fit a link
#
# What follows is optional and gives no points. Which links does a node have? A processor's PCIe *root complex* has
# lanes, 16 to a slot; *switches* let several GPUs and network cards (NICs) share them. `nvidia-smi topo -m` prints the
# path between each two devices (here without the columns of the processors; drawn by hand):
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
# **Predict:** GPU 2 sends to another node. Through which network card?

# %%
predict("which_card", "GPU 2 should send through", choices=("NIC0", "NIC1"))

# %%
with reveal_prediction("which_card") as truth:
    print("PIX: one switch away. SYS would cross both processors, and their memory")
    truth("NIC1")

# %% [markdown]
# α and the rate of a link come from a table of measured messages: time over size, from 8 B to 256 MiB, each with 2 % of
# noise. Write
#
# * `fit(sizes, took_s)` → `(alpha_s, byte_per_s, half_bytes)`: α within 10 %, the rate within 5 %, and the size at
#   which a message gets half of the rate;
# * `bus_rate(ranks, size, took_s)`: what nccl-tests calls the *bus bandwidth* of an all-reduce: the bytes that a link
#   must carry in a ring, over the time. It can be compared with the link's own rate, whatever the number of ranks.


# %% solve="fit_a_link"
def fit(sizes, took_s):
    """Alpha in seconds, bytes per second, and the bytes that get half of it."""
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
# ## Practice: accumulate, and send once
#
# With gradient accumulation on several ranks, `DistributedDataParallel` sends after every micro-batch unless you tell
# it not to: inside `with ddp.no_sync():` gradients stay where they are. Whether it sends is decided in the *forward*
# pass. What it sends is divided by the number of ranks: it gives the mean.
#
# Write `train(ddp, batches, window)`, which every rank runs: one step for each window of micro-batches, the rest at the
# end too, one all-reduce for each step. `ddp(batch)` gives the **sum** of the losses of this rank's tokens; it can be
# multiplied, divided and sent `backward()`. `ddp.zero_grad()`, `ddp.step()` and `ddp.world_size` are there. A batch is
# a dict with `tokens`, this rank's, and `tokens_everywhere`, those of all ranks. In each step every token of the
# window, on any rank, must weigh the same: one over their number.


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
# A batch norm sees the rows of its own rank alone, and with two rows a rank its mean and variance are noise. What a
# *synchronised* one needs from the others is little: a few numbers a channel, in **one** collective forward and **one**
# backward. Write, without autograd,
#
# * `normalise(x, running, comm, momentum=..., eps=...)` → `(y, running, kept)`. `x` is this rank's rows by channels, in
#   float64; ranks may have unequal numbers of rows, one at least. `y` is `(x - mean) / sqrt(variance + eps)`, with mean
#   and biased variance of the rows of *all* ranks. `running` is the pair `(mean, variance)` of before, and becomes `(1
#   - momentum) * old + momentum * new`, its variance divided by one less than the count. `kept` is whatever the way
#   back needs.
# * `go_back(gradient, kept, comm)` → the gradient of this rank's `x`, from that of its `y`. Each `y` depends on each
#   `x` of all ranks, through mean and variance: with `Σ` over all N rows, and `s` the factor that `x - mean` was
#   multiplied by, it is `s * (g - Σg / N - y * Σ(g * y) / N)`, channel by channel.
#
# `comm.all_gather(tensor)` gives the list of all ranks' tensors, which have one shape; `comm.all_reduce(tensor)` their
# sum. Values may lie near 100 000 with a deviation of 0.01: squares of such numbers agree in all but their last digits.


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
# `torch.nn.SyncBatchNorm` does this, with these two collectives, and `convert_sync_batchnorm` puts it into a model.
# What it costs is α, twice a layer, with nothing to hide behind: the next layer needs `y`.

# %% [markdown]
# ## Where you are

# %%
Progress("lab07_many_gpus")
