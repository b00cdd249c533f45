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
# ## Where you are

# %%
Progress("lab07_many_gpus")
