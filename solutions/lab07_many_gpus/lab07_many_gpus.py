# %% [markdown]
# # Many GPUs: who sends what, when
#
# Eight GPUs are eight times as fast, less what they spend on telling each other things. Who tells whom, how much, and
# *when*, decides whether that is 2 % or 70 %; and whether the job runs at all, for one rank that makes its calls in
# another order stops a thousand. You usually learn it on a rented cluster. Here every rank's program is recorded and
# replayed: each byte, each wait, each wrong sum is seen, on a laptop, exactly.
#
# After this lab you can
#
# * price a message and a collective, and pick the algorithm for a size and a cluster;
# * write an all-reduce that is right, fast and never hangs, and hide it behind the backward pass;
# * say from the state of all ranks which of them keeps the others waiting, and why;
# * shard a training step, split a block and fill a pipeline, with the memory and the time that it takes.
#
# **About 150 minutes.** No GPU and no second process is needed: what would be on GPUs is modelled and says so. *Write
# your prediction down* before you run the next cell: where there is a box (a number, with or without its unit, Enter),
# what comes out is shown beside it, and not before. Lecture slides are quoted by deck: [002] software perspective,
# [004] multi-node roofline. `hint("ring")` gives the hints of an exercise, one at a time.
#
# A check that fails shows the first case that is not right, and what your code gave; `case("ring")` gives that case's
# inputs as Python values, to try your code on.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.once_written import once_written
    from edl_labs.ui.predictions import predict, revealed
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
ranks = 8
blocks = 48
real_processes = False

# %% given
from edl_labs.plots import style
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
link = {"alpha_s": 20e-6, "byte_per_s": 6e9}
gradient_bytes = 100_000_000


def over_rank_0(dist):
    """The sum of all ranks' gradients, by way of rank 0."""
    gradients = dist.tensor(gradient_bytes // 4, name="gradients")
    if dist.rank == 0:
        for other in range(1, dist.world_size):
            part = dist.empty(len(gradients))
            dist.recv(part, other)
            dist.add(gradients, part)
            dist.free(part)
        for other in range(1, dist.world_size):
            dist.send(gradients, other)
    else:
        dist.send(gradients, 0)
        dist.recv(gradients, 0)


# %%
with revealed("at_one_rank") as truth:
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
# * `P - 1` rounds *gather*: the finished chunks go round, and take the place of what is there.
#
# Every rank sends `2(P - 1)/P` of the buffer, however many ranks there are. Deck [004] asks how large a batch must be
# for two nodes: `N/4` FLOP/B against its network ridge of 1000. With P ranks in a ring it is `N/(4(P - 1))`.
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
# A `send` goes on when somebody receives, and nobody does. With `isend` and `irecv` the rank goes on at once; what it
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
# touched, on neither side. Collectives of `dist` are for the sections after this one.


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
with once_written("ring"):

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
# All links are busy from the first round to the last. With 16, or 160 ranks it would take hardly longer: the number of
# bytes stays below twice the buffer. What grows is the number of *rounds*, and each of them costs α.

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
with revealed("crossing", "ring_of_64", "tree_of_64") as truth:
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
# `ALGORITHMS`. A job has `nodes`, `ranks_per_node` (P is their product), `message_bytes` (n, of each rank), the links
# `inside` a node and `between` nodes, each with `alpha_s` and `byte_per_s`, and `sum_byte_per_s`. In a round every
# message costs α + its bytes / rate, and all go at once; bytes that are *added up* on arrival cost
# bytes / `sum_byte_per_s` more.
#
# | algorithm | there, adding up what arrives | back, not adding |
# |---|---|---|
# | `ring` | P - 1 rounds of n/P | the same |
# | `tree` | log2 P rounds (rounded up) of n | the same |
# | `halving-doubling` | rounds of n/2, n/4, … n/P | the same |
# | `hierarchical` | in each node as a ring of its ranks; what a rank has then, as a ring of the nodes | the same |
#
# The first three know no nodes: with several, price each of their rounds on the links between. Where P is no power of
# two, take the power of two Q below it: for halving-doubling, the ranks beyond Q hand their n to a partner first, which
# adds it, and get n back in the end; in between there are Q ranks.

# %% given
ALGORITHMS = ("ring", "tree", "halving-doubling", "hierarchical")


# %% solve="pick_collective"
def price(algorithm, job):
    """Seconds of an all-reduce by one of ALGORITHMS."""
    ### BEGIN SOLUTION
    size, each, nodes = job["message_bytes"], job["ranks_per_node"], job["nodes"]
    count = each * nodes
    flat = job["between"] if nodes > 1 else job["inside"]

    def both_ways(times, part, over):
        message_s = over["alpha_s"] + part * size / over["byte_per_s"]
        return times * (2 * message_s + part * size / job["sum_byte_per_s"])

    if algorithm == "ring":
        return both_ways(count - 1, 1 / count, flat)
    if algorithm == "tree":
        return both_ways((count - 1).bit_length(), 1, flat)
    if algorithm == "hierarchical":
        within_s = both_ways(each - 1, 1 / each, job["inside"])
        return within_s + both_ways(nodes - 1, 1 / count, job["between"])
    depth = count.bit_length() - 1
    total_s = both_ways(1, 1, flat) if count > 1 << depth else 0.0
    return total_s + sum(both_ways(1, 0.5**turn, flat) for turn in range(1, depth + 1))
    ### END SOLUTION


def pick(job):
    """The name of the cheapest algorithm."""
    ### BEGIN SOLUTION
    return min(ALGORITHMS, key=lambda name: price(name, job))
    ### END SOLUTION


# %% check="pick_collective"
check("pick_collective")

# %% [markdown]
# Two nodes of eight H100, whose links the hardware table knows. **Predict:** which algorithm sums 100 MB there?

# %%
predict(
    "two_nodes",
    "100 MB are summed first by",
    choices=("ring", "tree", "halving-doubling", "hierarchical"),
)

# %%
with once_written("pick_collective"), revealed("two_nodes") as truth:
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
    truth(pick(job))

# %% [markdown]
# And over all sizes, from your own `price`:

# %%
with once_written("pick_collective"):
    figure, axes = style.subplots(figsize=(8, 3.5))
    sizes = [10 ** (at / 4) for at in range(8, 37)]
    for name in ALGORITHMS:
        took = [price(name, {**job, "message_bytes": size}) for size in sizes]
        axes.loglog(sizes, took, label=name)
    axes.set(xlabel="bytes", ylabel="seconds (modelled)")
    axes.legend()

# %% [markdown]
# NCCL makes this choice for you, by size and topology, with a model like yours. It is also why "the bandwidth of our
# network" has no single value: a small message sees α alone.

# %% [markdown]
# ## 3. Buckets: sums behind the backward pass
#
# The gradients of the *last* layer are there first, long before those of the first one. So they can travel while the
# rest is computed. Deck [004] draws its roofline as if all of that overlapped: the step takes the *larger* of computing
# and sending. Its own slide then sends W, which nobody has before the update: the *sum* of both. What you get lies in
# between, and you decide where.
#
# **Predict:** a model of 400 tensors, 8 ranks in a ring, α = 20 µs. How much do the α's alone cost when every tensor's
# gradient is summed by itself?

# %%
predict("alphas", "The alphas of 400 sums take", unit="ms")


# %% given
def summing_s(link, size):
    """Seconds of a ring all-reduce of `size` bytes."""
    rounds = 2 * (link["ranks"] - 1)
    return rounds * (link["alpha_s"] + size / link["ranks"] / link["byte_per_s"])


# %%
with revealed("alphas") as truth:
    alphas_s = 400 * summing_s({"ranks": 8, **link}, 0)
    print(f"modelled: {seconds(alphas_s)} for 400 empty sums")
    truth(alphas_s)

# %% [markdown]
# Few large sums pay few α's, and leave nothing to hide behind; many small ones hide well and pay α each. That is what
# `bucket_cap_mb` of `DistributedDataParallel` (25 MB unless you say otherwise) trades off; it knows neither your links
# nor your layers. Write two functions:
#
# * `plan_buckets(layers, link)` → lists of layers' numbers, in the order in which they are sent. A layer is a dict with
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
# **Predict:** a model of `blocks` blocks, each with a large layer and a small one, whose sums in one bucket would take
# as long as its backward pass. How much of the sums is left over, *exposed*, with your groups? Say it in per cent of
# the backward pass.

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
with once_written("buckets"), revealed("exposed") as truth:
    backwards = [*range(len(layers))][::-1]
    plans = {"one bucket": [backwards], "one a layer": [[one] for one in backwards]}
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
# The last bucket is the one that nobody can hide: it is small, and those before it are as large as the backward pass
# allows. A single fixed cap cannot be both.

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
with revealed("left_out") as truth:
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
# Write `who_hangs(groups, ranks)` → `(answer, rank)`. `groups` maps names to members. A rank is a dict with `doing`
# (`"waits"`, `"computes"`, `"ended"` or `"no sign"`) and `calls`, its last ones, the latest last: dicts with `group`,
# `number` (its place among that group's calls), `call`, `numel` and `done`. A rank that waits does so in the last of
# its calls. Calls *meet* that have one group and one number. Ask in this order; the first yes counts, and the rank is
# the one at fault:
#
# 1. `"other call"`: in a meeting, one rank makes another call than the rest.
# 2. `"other size"`: it makes the same call with another `numel`.
# 3. `"lost"`: a rank that others wait for gives no sign.
# 4. `"ended early"`: it has come to the end of its program.
# 5. `"only slow"`: it still computes.
# 6. `"crossed groups"`: all wait, in two groups, for each other; one rank took them in another order than the rest.
#
# Only members are waited for. Guessing is worth nothing: points begin beyond what luck can bring.


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
    return "crossed groups", next(iter(min(meetings.values(), key=len)))
    ### END SOLUTION


# %% check="who_hangs"
check("who_hangs")

# %% [markdown]
# The two habits that keep you from ever needing it: no collective inside an `if` that can differ between ranks, and the
# same order of groups everywhere.

# %% [markdown]
# ## 5. Sharded: gather, use, let go
#
# In data parallel training every rank holds the same 16 bytes for each parameter: weights, gradients, and Adam's two
# averages. *Sharded* (deck [002]'s ZeRO; in PyTorch, FSDP), a rank keeps a `P`-th of each and gathers a layer's weights
# when it is that layer's turn. 7.5 billion parameters are 120 GB on every GPU; sharded over 64, they are 1.9 GB.
#
# The price: weights are gathered twice in a step, forward and backward, instead of never, and gradients are reduced and
# scattered, which is the first half of an all-reduce. **Predict:** how many bytes does a rank send in a sharded step,
# compared to the all-reduce of plain data parallel training?

# %% given
from edl_labs.roofline.network import StateBytes, zero_bytes_per_parameter, zero_calls
from edl_labs.virtual.cluster import ShardedLayers

# %%
predict("times_the_bytes", "A sharded step sends, times as much")

# %%
with revealed("times_the_bytes") as truth:
    sent = {}
    for stage in (0, 3):
        calls = zero_calls(
            stage, 7.5e9, ranks=64, state=StateBytes(weights=2, gradients=2)
        )
        sent[stage] = sum(call.sent_bytes(64) for call in calls)
        held = 7.5e9 * zero_bytes_per_parameter(stage, ranks=64)
        told = f"{byte_count(held)} held, {byte_count(sent[stage])} sent"
        print(f"modelled, stage {stage}: {told}")
    truth(sent[3] / sent[0])

# %% [markdown]
# Half as much again, and compute must not wait for it. Write `sharded_step(layers)`, one rank's step. `layers` is a
# `ShardedLayers`: `layers.count` of them, numbered from 0, and
#
# | call | does |
# |---|---|
# | `layers.all_gather(i)` | starts to gather layer i's weights, and gives back a work; memory is taken at once |
# | `layers.forward(i)`, `layers.backward(i)` | a pass; it reads the gathered weights; backward makes gradients |
# | `layers.free(i)` | gives the gathered weights back |
# | `layers.reduce_scatter(i)` | starts to sum the gradients of layer i over the ranks, and gives back a work |
# | `layers.update(i)` | updates the shard from the sum, and gives the layer's whole gradients back |
#
# `work.wait()` makes what comes after it wait, and nothing else does. A collective runs *beside* the passes, and starts
# when everything that was issued before it is done; collectives run one after the other. Memory is counted in the order
# of your calls. It has room for two layers' weights and two layers' gradients at once, and not for three of either. At
# most 5 % more time than the best step will do.


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
with once_written("sharded_step"):
    sizes = {"elements": [50_000_000] * 6, "forward_s": [2e-3] * 6}
    node = VirtualCluster(ClusterMachine.of("8xH100").replace(ranks=4))
    shown = node.run(
        lambda dist: sharded_step(ShardedLayers(dist, **sizes, backward_s=[4e-3] * 6))
    )
    print(f"modelled: {shown}")
    print(f"the passes alone: {seconds(max(shown.compute_s))}")
    figure, axes = style.subplots(figsize=(9, 4))
    axes = shown.timeline.plot(axes)

# %% [markdown]
# All but the first gather and the last sum hide behind passes. That is what `fully_shard` does for you; what it cannot
# do is to make layers large enough: a gather that takes longer than its pass is waited for, however early it begins.

# %% [markdown]
# ## 6. One block on two GPUs
#
# Where a single layer is too large, or must be faster, its matrices are cut (*tensor parallelism*). In `f(x A) B` the
# nonlinearity wants whole sums: so `A` is cut by **columns**, each rank applies `f` to its own channels, and `B` is cut
# by the same **rows**. Every rank then has a part of every sum of the output, and one all-reduce adds them up. In
# attention, heads take the part of the channels.
#
# **Predict:** a block (attention and MLP) of width 4096 works on 2048 tokens in bf16, on 8 GPUs of one node. How many
# bytes does each all-reduce add up? And how many are there in the whole block, forward and backward together?

# %% given
from edl_labs.roofline.network import tensor_calls

# %%
predict("summed", "Each all-reduce adds up", unit="MB")
predict("sums", "All-reduces of a block, forward and backward")

# %%
with revealed("summed", "sums") as truth:
    calls = tensor_calls(2048, hidden=4096, blocks=1, ranks=8)[0]

    def sum_of_a_block(dist):
        dist.all_reduce(dist.tensor(2048 * 4096, dtype="bf16"))

    for nodes in (1, 2):
        added = VirtualCluster(ClusterMachine.of("8xH100", nodes=nodes)).run(
            sum_of_a_block
        )
        took = seconds(added.makespan_s)
        print(f"modelled, {8 * nodes} GPUs in {nodes} node(s): {took}")
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
# The cell above computes a whole block; use `heads_of` for a rank's own heads. Write
#
# * `shards(block, rank, ranks)` → a dict with the block's names and a rank's part of each; sizes need not divide by
#   `ranks`, and parts differ by one column (or head) at most. A head is never cut;
# * `forward(shard, x, comm)` → the block's whole output, on every rank. `comm.all_reduce(tensor)` gives the sum over
#   the ranks as a new tensor. *Autograd does not see it*: so write the two `torch.autograd.Function`s that Megatron
#   calls f and g. Their backward passes are what makes the gradients right, with **one** all-reduce forward and **one**
#   backward.


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
# Four sums a block, and none of them can hide: the next layer needs the whole sum. That is why a block is split within
# a node alone, where links are fast; between nodes, micro-batches travel instead.

# %% [markdown]
# ## 7. A pipeline, and what 1F1B is for
#
# Deck [002] puts layers 0 to 2 on one GPU and layers 3 to 5 on the next. A batch that goes through as a whole keeps one
# GPU busy at a time; cut into `m` micro-batches, they follow each other, and the stages idle only while the pipeline
# fills and drains: the **bubble**, `(p - 1)/(m + p - 1)` of the step with `p` stages. GPipe runs all forward passes,
# then all backward passes. **1F1B** goes back as soon as a gradient is there: after a few forward passes to warm up,
# one forward, one backward.
#
# **Predict:** 4 stages, 16 micro-batches. Public tutorials say that 1F1B cuts the bubble. Measured on the cluster, what
# share of the step does a stage idle with GPipe, and with 1F1B? And how many micro-batches does the first stage hold?

# %% given
from edl_labs.virtual.cluster import PipelineStage

# %%
predict("gpipe_bubble", "With GPipe a stage idles", unit="%")
predict("1f1b_bubble", "With 1F1B a stage idles", unit="%")
predict("in_flight", "With 1F1B the first stage holds, in micro-batches")

# %% [markdown]
# Write three functions. `order(schedule, stage, stages, micro)` → what a stage does, in its order: a list of
# `("forward", i)` and `("backward", i)`, each micro-batch `i` once forward and once back. `schedule` is `"gpipe"` or
# `"1f1b"`. In 1F1B no stage holds more micro-batches than are needed to keep it busy.
#
# `run_stage(stage, schedule)` does it on one rank. A `PipelineStage` has the numbers `stage` (which one it is),
# `stages` and `micro`, and these calls; the first stage receives no input, the last one no gradient:
#
# | call | does |
# |---|---|
# | `stage.forward(i)`, `stage.backward(i)` | a pass; from one to the other, `i` is held |
# | `stage.recv_forward(i)`, `stage.recv_backward(i)` | wait for the input, for the gradient |
# | `stage.send_forward(i)`, `stage.send_backward(i)` | send, and go on when it *has been received* |
# | `stage.isend_forward(i)`, `stage.isend_backward(i)` | start to send, and go on |
#
# `idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks)` → the seconds that each stage idles in a
# step, messages not counted. A third `schedule`, `"interleaved"`, gives each stage `chunks` separate pieces of the
# layers, each of which takes one `chunks`-th of the time; `chunks` is 1 in the others.


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
    """Does a step on one rank."""
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
    """The seconds that each stage idles in a step."""
    ### BEGIN SOLUTION
    return (stages - 1) * (forward_s + backward_s) / chunks
    ### END SOLUTION


# %% check="pipeline"
check("pipeline")

# %%
with (
    once_written("pipeline"),
    revealed("gpipe_bubble", "1f1b_bubble", "in_flight") as truth,
):
    sizes = {"micro": 16, "elements": 1_000_000, "kept": 25_000_000}
    stages, passes = VirtualCluster.of("8xH100").machine.replace(ranks=4), {}
    bubbles = {}
    for schedule in ("gpipe", "1f1b"):
        passes[schedule] = VirtualCluster(stages).run(
            lambda dist, name=schedule: run_stage(
                PipelineStage(dist, **sizes, forward_s=4e-3, backward_s=8e-3), name
            )
        )
        done = passes[schedule]
        bubbles[schedule] = 1 - max(done.compute_s) / done.makespan_s
        held = byte_count(done.peak_bytes[0])
        print(
            f"modelled, {schedule}: {seconds(done.makespan_s)}, "
            f"idle {bubbles[schedule]:.1%}, {held} on the first stage"
        )
    held = round(passes["1f1b"].peak_bytes[0] / (4 * sizes["kept"]))
    truth(
        **{f"{name}_bubble": share for name, share in bubbles.items()},
        in_flight=held,
    )
    figure, (above, below) = style.subplots(2, 1, figsize=(9, 5))
    above = passes["gpipe"].timeline.plot(above)
    below = passes["1f1b"].timeline.plot(below)

# %% [markdown]
# The bubble is 3/19 in both, and would be 3/7, 42.9 %, with 4 micro-batches: only *more micro-batches* or *interleaved*
# layers shrink it. What 1F1B changes is the memory: 4 micro-batches instead of 16, however many there are. And that is
# how it helps after all: with memory for 16, one can afford more of them.

# %% [markdown]
# ## 8. The same program on real processes
#
# A program that was recorded can also run: `backend="gloo"` starts one process of `torch.distributed` for each rank, on
# this machine, plays the program there, and compares what every tensor holds in the end with the replay. On a machine
# with several GPUs, `backend="nccl"` does the same. It takes half a minute, so what you see is a recording unless you
# set `real_processes = True` at the top. Nothing of it counts for your points.

# %%
with once_written("ring"):

    def on_two_processes(dist):
        all_reduce(dist, dist.tensor(1001, name="gradients"))

    pair = VirtualCluster.flat(2)
    if real_processes:
        real = pair.run(on_two_processes, backend="gloo", ranks=2).real
        told = f"{real.ranks} processes, {real.elements} elements as replayed"
        print(f"measured here: {told}")
    else:
        pair.run(on_two_processes).require_finished()
        print("recorded on a CPU: 2 processes, 2002 elements as replayed")

# %% [markdown]
# All 2002 elements are what the replay said. The *time* is no measurement of anything: two processes on one CPU have no
# link between them, and starting them takes the seconds. Right is checked there, fast is modelled here.

# %% [markdown] explain="explain"
# **Explain (read by your instructor).** A transformer of 30 billion parameters is to be trained in bf16 with Adam on
# four nodes of eight GPUs with 80 GB each. A GPU reaches 400 TFLOP/s; links carry 450 GB/s within a node, and 50 GB/s
# for each GPU between nodes. (a) How many bytes do weights, gradients and Adam need, and which ways of spreading them
# make them fit? (b) Choose one for a step of one million tokens, and one for 64 000 tokens: with numbers of what is
# computed and what is sent, what hides and what does not? (c) Somebody proposes four pipeline stages with eight
# micro-batches, "in 1F1B, which shrinks the bubble". What is right about that, and what would you do instead?

# %% [markdown]
# ## Practice: fit a link
#
# What follows is optional and gives no points. α and the rate of a link come from a table of measured messages: time
# over size, from 8 B to 256 MiB, each with 2 % of noise. Write
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
# With gradient accumulation on several ranks, `DistributedDataParallel` sends after every micro-batch unless it is told
# not to: inside `with ddp.no_sync():` gradients stay where they are. Whether it sends is decided in the *forward* pass.
# What it sends is divided by the number of ranks: it gives the mean.
#
# Write `train(ddp, batches, window)`, which every rank runs: one step for each window of micro-batches, the rest at the
# end too, one all-reduce for each step. `ddp(batch)` gives the **sum** of the losses of this rank's tokens; it can be
# multiplied, divided and sent `backward()`. `ddp.zero_grad()`, `ddp.step()` and `ddp.world_size` are there. A batch has
# `tokens`, this rank's, and `tokens_everywhere`, those of all ranks. In each step every token of the window, on any
# rank, must weigh the same: one over their number.


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
# ## Practice: what each stage of ZeRO holds and sends
#
# Stage 0 is plain data parallel training. Each stage shards one part more: stage 1 the optimizer's state, stage 2
# gradients too, stage 3 weights too. **Predict:** with 2 bytes for a weight, 2 for a gradient and 12 for Adam, how many
# bytes of the 16 does stage 2 leave for each parameter on 8 GPUs? And which is the first stage that sends more than
# stage 0, with one micro-batch?

# %%
predict("stage_2_holds", "For each parameter stage 2 holds", unit="B")
predict(
    "sends_more", "The first to send more is", choices=("stage 1", "stage 2", "stage 3")
)

# %% [markdown]
# Write, for a `stage` of 0 to 3 on `ranks` GPUs,
#
# * `held_bytes(stage, ranks, recipe)`: the bytes of state on a GPU between two passes, with its gradients there;
# * `sent_bytes(stage, ranks, recipe)`: the bytes that a GPU sends in a step.
#
# | of a recipe | is |
# |---|---|
# | `layers` | the parameters of each layer |
# | `frozen` | so many of the first layers are not trained: they have weights alone, and no backward pass |
# | `weights`, `gradients`, `optimizer` | bytes a parameter |
# | `micro_batches` | in a step: each goes forward and backward, then comes one update |
#
# Each layer is cut by itself: a *shard* is its parameters over `ranks`, rounded up, on every GPU. What is not sharded
# is whole, and needs no padding. Collectives go round in rings, layer by layer: an all_gather or a reduce_scatter sends
# `ranks - 1` shards, an all_reduce twice that. Whole gradients are added up over the micro-batches where they are;
# sharded ones have to be summed over the ranks after each. Sharded weights are gathered for a pass and let go after it,
# and each GPU updates what its optimizer's state is for. Nothing is sent that nobody needs.


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
# The model of section 5 again, 7.5 billion parameters on 64 GPUs, from your own functions:

# %%
with once_written("zero"), revealed("stage_2_holds", "sends_more") as truth:
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
# Stage 1 holds a quarter, stage 2 a seventh, and neither sends more: an all_reduce is a reduce_scatter and an
# all_gather, and what changes is what is gathered. That is so with one micro-batch: stage 2 pays for each of them.


# %% [markdown]
# ## Practice: place a training job
#
# Which of all this, for a given model on a given cluster? A *layout* says how many replicas (`dp`), how many GPUs share
# a block (`tp`) and how many stages there are (`pp`); their product is the number of GPUs. `micro` sequences are in a
# micro-batch, `micro_batches` in a step of each replica; `zero` is a stage, `recompute` a bool. Price a layout:
#
# * **Parameters** of a GPU, n: `blocks / pp * block_parameters / tp`.
# * **State**: 16 B for each of n. Stage 1 shards 12 of them over `dp`, stage 3 all 16.
# * **Activations**: t = `micro * sequence` tokens keep 34·t·`hidden` / `tp` B a block. With `recompute` it is
#   2·t·`hidden` B a block, and once 34·t·`hidden` / `tp` for the block that runs. The first stage keeps those of all
#   its blocks for `pp` micro-batches, or for all of them if there are fewer.
# * **Computing** of a micro-batch: 6·n·t FLOP, 8 with `recompute`, at `flop_per_s`, or at I · `memory_byte_per_s` if
#   that is less. I is the FLOP/B of a GPU's own product: t × `hidden` by `hidden` × w, in 2-byte types, with w = 4 ·
#   `hidden` / `tp`; both are read once, and what comes out is written.
# * **Split blocks**: 4 all-reduces of 2·t·`hidden` B a block and micro-batch, 6 with `recompute`.
# * **Hand-overs**, where there are stages: 2 messages of 2·t·`hidden` B a micro-batch.
# * **A step**: computing, split blocks and hand-overs of a micro-batch fill a *slot*; a step has
#   `micro_batches + pp - 1` of them.
# * **Data sums**: in stages 0 and 1 an all-reduce of 2·n B a step; in stage 3 two gathers and one reduce-scatter of
#   2·n B for each micro-batch. They run beside the computing of one micro-batch (in stage 3: of all of them, without
#   the bubble), and what they take longer than that is added to the step.
#
# Messages go in rings: in a group of P a gather or a reduce-scatter is P - 1 rounds of a P-th, an all-reduce twice as
# many; a round takes α + bytes / rate. GPUs are numbered so that a group of `tp` are neighbours, `dp` spans `tp * dp`
# GPUs and `pp` spans all. What spans no more than `gpus_per_node` uses the links `inside`, all else those `between`.
#
# Write `layout_bytes(job, layout)`, `layout_s(job, layout)` for a step, and `place(job)` → the layout that fits into
# `memory_bytes` and trains the most *useful* sequences a second (97 % of the best will do). Sequences beyond
# `useful_sequences` in a step make it no better: they are computed for nothing.

# %% given
from itertools import product


def every_layout(job):
    """All layouts that are asked for, as dicts."""
    gpus = job["nodes"] * job["gpus_per_node"]
    powers = [2**at for at in range(gpus.bit_length())]
    names = ("dp", "tp", "pp", "micro", "micro_batches", "zero", "recompute")
    for dp, tp in product(powers, powers):
        if dp * tp <= gpus:
            for rest in product((1, 4), (1, 4, 16), (0, 1, 3), (False, True)):
                yield dict(zip(names, (dp, tp, gpus // dp // tp, *rest), strict=True))


# %% [markdown]
# **Predict:** 48 blocks of width 6144 (22 billion parameters) on two nodes of eight GPUs with 80 GB. How many GPUs
# share a block in the best layout, if links between nodes have 25 GB/s? And if they had 400?

# %%
predict("tp_slow", "With 25 GB/s between nodes a block is shared by", unit="GPUs")
predict("tp_fast", "With 400 GB/s between nodes a block is shared by", unit="GPUs")


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
    """The layout that fits and trains the most useful sequences a second."""

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
with once_written("layout"), revealed("tp_slow", "tp_fast") as truth:
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
        print(f"  {seconds(layout_s(placed, best[rate]))} a step")
    truth(tp_slow=best[25e9]["tp"], tp_fast=best[400e9]["tp"])

# %% [markdown]
# With slow links between nodes blocks are shared by GPUs of one node, and only gradients cross. With links as fast
# outside as inside nothing is split: state is sharded over all 16, each product is whole, and its weights arrive while
# the one before is computed. Neither is a rule: change `useful_sequences` or `memory_bytes`, and see.

# %% [markdown]
# ## Where you are

# %%
Progress("lab07_many_gpus")
