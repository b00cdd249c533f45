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
from edl_labs.virtual.cluster import VirtualCluster

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
# ## Where you are

# %%
Progress("lab07_many_gpus")
