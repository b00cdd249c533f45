# %% [markdown]
# # Data pipelines: feeding the model
#
# Even the fastest GPU trains no faster than its batches arrive. A sample passes through a disk, a decoder, a few
# processes, a queue and a copy before a step can use it, and the slowest of them sets the pace of all.
#
# After this lab you can
#
# * plan what to read and in which order, and tell a cold measurement from a warm one;
# * predict the rate of a loader from its number of workers, measure it, and avoid the surprises that workers bring;
# * build batches of sequences that contain little padding and are still shuffled;
# * load ahead of the device with few buffers and without a race;
# * say what makes a loop slow, what may be done once before training, and which format suits an access pattern.
#
# **About 205 minutes (estimated)**, in two sittings: the first ends with section 3. The practice sections carry no
# points; they take another 102 minutes (estimated) and can be done in any order.
#
# | exercise | section | minutes |
# |---|---|---|
# | `read_plan` | 1 | 28 |
# | `predict_workers` | 2 | 36 |
# | `bucket_sampler` | 3 | 23 |
# | `overlap_plan` | 4 | 27 |
# | `whose_fault` | 5 | 27 |
# | `decode_once` | 7 | 28 |
# | `storage_format` | 8 | 36 |
#
# | practice | section | minutes |
# |---|---|---|
# | `stage_ladder` | 10 | 26 |
# | `collate_pad` | 11 | 20 |
# | `pack_sequences` | 12 | 25 |
# | `prefetcher` | 13 | 31 |
#
# No GPU is needed, and nothing is downloaded: all data are generated here. In each section, *write your prediction
# down* before you run the next cell. If there is a box, enter a number, with or without its unit, and press Enter; the
# result appears next to it only after that. Stuck? `hint("read_plan")` gives an exercise's hints, one at a time.
# Lecture slides are quoted by their deck: [000] optimizing training pipelines, [002] software perspective, [003]
# performance and profiling.
#
# A check that fails shows the first wrong case, with what your code returned; `case("read_plan")` gives that case's
# inputs as Python values, so that you can try your code on them.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.requires_solution import requires_solution
    from edl_labs.ui.predictions import predict, reveal_prediction
    from edl_labs.ui.progress_bar import progress_bar
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
images = 96
seconds = 2.0

# %% given
import queue
import random
import tempfile
import threading
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from edl_labs import units
from edl_labs.virtual import HDD, NVME, Disk, LoaderMachine
from edl_labs.virtual import VirtualGPU, VirtualMachine, VirtualWorkers
from edl_labs.virtual.bin_tree import BinTree

# Section 2 asks for more workers than there may be cores, on purpose.
warnings.filterwarnings("ignore", message="This DataLoader will create")


def timed(work):
    """Seconds that `work()` takes, once."""
    began_s = perf_counter()
    work()
    return perf_counter() - began_s


# %%
Progress("lab04_data_pipelines")

# %% [markdown]
# ## 1. What to read
#
# > **shard**: a file that holds many samples, one after the other. **epoch**: one pass over all samples.
#
# Deck [003] recommends *sequential I/O instead of random access*, and gives two numbers: about 150 MB/s for a disk,
# about 3000 MB/s for NVMe. Both apply only if each read continues where the last one stopped. Any other read first
# costs a *seek*: 8 ms for a head that moves, 80 µs for NVMe, 50 ms for a request to a store across the network.
#
# **Predict:** you read a thousand samples of 100 kB from a disk with a seek of 8 ms and 150 MB/s. How long does it take
# in the order in which they are stored, and how long in random order? And how long does it take on NVMe (80 µs, 3000
# MB/s)?

# %%
predict("disk_in_order", "In order, the disk takes", unit="s")
predict("disk_scattered", "In random order, the disk takes", unit="s")
predict("nvme_scattered", "In random order, an NVMe drive takes", unit="ms")


# %%
def both_ways_s(disk):
    """Seconds for the thousand samples, read in order and scattered."""
    part_bytes = 1000 * 100_000 // disk.channels
    in_order_s = disk.read_s(part_bytes, seeks=1 // disk.channels)
    return in_order_s, disk.read_s(part_bytes, seeks=1000 // disk.channels)


# %%
with reveal_prediction("disk_in_order", "disk_scattered", "nvme_scattered") as truth:
    found = {}
    for disk in (HDD, NVME):
        in_order, scattered = found[disk.name] = both_ways_s(disk)
        times = f"in order {units.seconds(in_order)}"
        times += f", scattered {units.seconds(scattered)}"
        print(f"{disk.name}: {times}, {scattered / in_order:.3g} times as long")
    (disk_s, disk_scattered_s), (_, nvme_s) = found.values()
    print("scattered reads fetch the same bytes, with a seek for each sample")
    truth(disk_in_order=disk_s, disk_scattered=disk_scattered_s, nvme_scattered=nvme_s)

# %% [markdown]
# (Modelled: `NVME` serves eight requests at a time.) Deck [000] points to "latency numbers every programmer should
# know". The numbers for 2020 (from Colin Scott's page) form a ladder: how long does it take until the first byte
# arrives?
#
# | from | latency |
# |---|---|
# | L1 cache | 1 ns |
# | L2 cache | 4 ns |
# | main memory | 100 ns |
# | SSD, random read | 16 µs |
# | round trip to another machine in the data centre | 500 µs |
# | disk seek | 2 ms |
#
# A disk seek takes 20 000 times as long as an access to main memory. A read pays its latency only once, however long it
# is: at 150 MB/s, a disk could read 300 kB in 2 ms.
#
# But order is only half of a plan. If nearly all samples of a shard are wanted, it is quicker to *read through* the
# unwanted ones in between than to jump over them.
#
# Write `read_plan(wanted, seek_s=..., byte_per_s=...)`. `wanted` is a list of `(shard, start, stop)`, one for each
# sample, in the order in which they were requested: bytes `start` up to, but not including, `stop` of a shard. Return
# the reads to make, as a list of `(shard, start, stop)`. Every wanted byte must be in one of them. A read that
# continues where the last one stopped, in the same shard, costs no seek. The check runs your plan on the modelled disk.
# Its time may be at most 1 % longer than that of the best plan.


# %% solve="read_plan"
def read_plan(wanted, *, seek_s, byte_per_s):
    """The reads (shard, start, stop) that fetch all of `wanted` in the least time."""
    ### BEGIN SOLUTION
    plan = []
    for shard, start, stop in sorted(wanted):
        if plan and plan[-1][0] == shard and start - plan[-1][2] <= seek_s * byte_per_s:
            plan[-1] = (shard, plan[-1][1], stop)
        else:
            plan.append((shard, start, stop))
    return plan
    ### END SOLUTION


# %% check="read_plan"
check("read_plan")


# %%
def scattered_parts(count, *, of, nbytes):
    """`count` of the `of` parts of a shard, in random order."""
    drawn = random.Random(0).sample(range(of), count)
    return [(0, nbytes * i, nbytes * (i + 1)) for i in drawn]


# %%
with requires_solution("read_plan"):
    for share in (0.02, 0.2, 0.7):
        wanted = scattered_parts(int(share * 2000), of=2000, nbytes=100_000)
        for name, seek_s, rate in (("hdd", 8e-3, 150e6), ("nvme", 80e-6, 3e9)):
            plan = read_plan(wanted, seek_s=seek_s, byte_per_s=rate)
            read = sum(stop - start for _, start, stop in plan)
            useful = units.percent(len(wanted) * 100_000 / read, digits=2)
            told = f"{len(plan):>4} reads; {useful} of their bytes are wanted"
            print(f"{share:>4} of the samples from {name:>4}: {told}")

# %% [markdown]
# In the time of a seek of 8 ms, the disk could have read 1.2 MB, which is twelve samples. In 80 µs at 3 GB/s, NVMe
# could have read 240 kB, little more than two samples. The same question has different answers on different disks, so
# use the disk's own figures instead of a rule of thumb.
#
# Now measure this machine. A second read of the same data is served from the *page cache* in memory, and says nothing
# about the disk. For a *cold* measurement, the pages are dropped from the cache first. **Predict:** how much faster is
# the second read of a file?

# %%
predict("warm_gain", "The speedup of the second read in order is", unit="times")

# %%
from edl_labs.pipeline import image_set, make_cold, make_warm, write

if "scratch" not in globals():  # a second run keeps what later cells wrote there
    scratch = tempfile.TemporaryDirectory()
photos = image_set(images)
store = write(photos, Path(scratch.name) / "tar", format="tar")
print(
    f"{len(photos)} JPEGs, {units.byte_count(photos.nbytes)}, "
    "generated here and kept in the cache folder"
)
store.read(0)  # does the imports and reads the index, before anything is measured
mixed = random.Random(0).sample(range(len(store)), len(store))

# %%
with reveal_prediction("warm_gain") as truth:
    reading = []
    for prepare in (make_cold, make_warm):
        orders = (("in order", range(len(store))), ("in random order", mixed))
        for name, order in orders:
            state = prepare(store.paths)
            reading.append(timed(lambda order=order: store.read_many(order)))
            rate = units.byte_rate(store.nbytes / reading[-1])
            print(f"measured here, {state}: {name} {rate}")
    cold_s, _, warm_s, _ = reading
    truth(cold_s / warm_s)

# %% [markdown]
# Whatever your disk is, the warm figures are those of memory. If the cold and warm figures are similar, then either the
# disk has its own cache (in a virtual machine's host, or in a network store), or the system could not drop the pages;
# the printed state says which. A benchmark that does not say whether it was cold has measured nothing. (In section 8
# you run your plan on this disk.)

# %% [markdown]
# ## 2. How many workers
#
# > **collate**: to combine several samples into one batch. **worker**: a process that makes batches while the training
# > loop runs.
#
# A sample passes through the stages open → read → decode → transform → collate → copy → step. A *ladder* lists the time
# of each stage, alone and together with all stages before it. The next cells measure this machine's ladder for JPEGs of
# 375 × 500 pixels, each in its own file, with all files in the page cache. **Predict:** which stage takes longest? Each
# stage is measured several times, which takes about ten seconds.

# %%
stages_here = ("open", "read", "decode", "transform", "collate")
predict("slowest_stage", "The stage that takes longest is", choices=stages_here)

# %%
from edl_labs.pipeline import image_stages, measure_ladder

raw = write(photos, Path(scratch.name) / "raw", format="raw")
state = make_warm(raw.paths)
ladder = measure_ladder(
    image_stages(raw), range(len(raw)), batch_size=8, cache=state.word
)

# %%
with reveal_prediction("slowest_stage") as truth:
    print("measured here, each time with its interval:")
    print(ladder)
    print("in memory, a JPEG pipeline is usually a decoder with some decoration")
    truth(ladder.slowest.name)

# %% [markdown]
# Opening and reading, the subject of section 1, matter again as soon as the data set is larger than the memory. If the
# intervals are wide, this machine was busy, and the order of two stages may be due to chance.

# %% [markdown]
# Deck [003]: *use more CPU cores per GPU and use more I/O workers per GPU*. How many are enough? Each resource sets a
# bound, as in a roofline, and the smallest bound is the one that counts. A batch needs a core for `cpu_s`, waits for
# something outside this machine (a response over the network) for `wait_s`, and needs the disk, which serves one
# request at a time, for `disk_s`. A worker does these things one after another. The training step takes `step_s`: on a
# device if `step_threads` is 0, and otherwise on that many of the machine's `cores`.
#
# Write `predict_workers(workers, machine)` → `(batch_per_s, limit)`, where `limit` names the resource with the smallest
# bound (no two are equal in the check):
#
# | limit | its rate if all the other resources were free |
# |---|---|
# | `"workers"` | each of them makes one batch after another |
# | `"cores"` | all cores together do all work that needs a core, including the step's |
# | `"disk"` | it serves one batch after another |
# | `"step"` | it processes one batch after another |
#
# With `workers=0`, the main process does everything itself, one thing after another; the limit is then `"workers"`.
# Afterwards, a picture compares your bound with the rates of `VirtualWorkers`, a model of such a machine on a virtual
# clock.
#
# **Predict:** a machine has 8 cores; a batch needs 40 ms of processor time, 10 ms of waiting and 1 ms of disk time; a
# step takes 4 ms on a GPU. How many workers are enough? And what percentage of the rate remains if the step takes 4 ms
# on 8 cores instead?

# %%
predict("enough", "More workers gain nothing beyond", unit="workers")
predict("same_cores", "With the step on the same cores, the rate falls to", unit="%")


# %% solve="predict_workers"
def predict_workers(workers, machine):
    """(batch_per_s, limit) of a loop with this number of workers."""
    ### BEGIN SOLUTION
    cpu_s, step_s = machine["cpu_s"], machine["step_s"]
    batch_s = cpu_s + machine["wait_s"] + machine["disk_s"]
    if workers == 0:
        return 1 / (batch_s + step_s), "workers"
    bounds = {
        "workers": workers / batch_s,
        "cores": machine["cores"] / (cpu_s + machine["step_threads"] * step_s),
        "disk": 1 / machine["disk_s"],
        "step": 1 / step_s,
    }
    limit = min(bounds, key=bounds.get)
    return bounds[limit], limit
    ### END SOLUTION


# %% check="predict_workers"
check("predict_workers")


# %% given
def simulated_rate(workers, machine, *, batches=200):
    """Batches per second of such a loop on VirtualWorkers."""
    disk = Disk("disk", seek_s=0.0, read_byte_per_s=1e9)
    vw = VirtualWorkers(LoaderMachine(cores=machine["cores"], disks=(disk,)))
    nbytes = round(machine["disk_s"] * 1e9)
    file = vw.file(nbytes)
    work = [
        ("read", file.index, 0, nbytes),
        ("sleep", "wait", machine["wait_s"]),
        ("cpu", "decode", machine["cpu_s"]),
    ]
    for _ in vw.loader([work] * batches, workers=workers, prefetch=4):
        vw.step(machine["step_s"], threads=machine["step_threads"])
    return batches / vw.now_s()


# %%
from edl_labs.plots import style


# %%
def draw_rates(machine):
    """Your bound and the simulated rates, with the step on a device or on all cores."""
    figure, panes = style.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    where, numbers = {0: "a device", 8: "8 of the 8 cores"}, list(range(1, 25))
    for axes, (threads, place) in zip(panes, where.items(), strict=True):
        setting = {**machine, "step_threads": threads}
        rates = [predict_workers(n, setting)[0] for n in numbers]
        axes.plot(numbers, rates, label="predicted")
        rates = [simulated_rate(n, setting) for n in numbers]
        axes.plot(numbers, rates, "o", ms=3, label="VirtualWorkers")
        axes.set(xlabel="workers", title=f"step on {place} (modelled)")
    panes[0].set_ylabel("batches/s")
    panes[0].legend(frameon=False)


# %%
machine = {"cores": 8, "cpu_s": 40e-3, "wait_s": 10e-3, "disk_s": 1e-3}
machine |= {"step_s": 4e-3, "step_threads": 0}
with (
    requires_solution("predict_workers"),
    reveal_prediction("enough", "same_cores") as truth,
):
    shares_cores = {**machine, "step_threads": 8}
    on_device = [predict_workers(n, machine) for n in range(1, 25)]
    on_cores = [predict_workers(n, shares_cores) for n in range(1, 25)]
    enough = 1 + [limit != "workers" for _, limit in on_device].index(True)
    print(f"with {enough} workers or more, {on_device[-1][1]} set the pace")
    best, shared = on_device[-1][0], on_cores[-1][0]
    print(f"at best {best:.0f} batches/s; with the step on the cores, {shared:.0f}")
    draw_rates(machine)
    truth(enough=enough, same_cores=shared / best)

# %% [markdown]
# On the left, more workers help until the cores are used up; each worker spends a fifth of its time waiting. On the
# right, a step on the same cores takes 32 ms of core time from every batch, and no number of workers brings that back.
# The simulated loop is never above the bound: a bound says what is possible if no part ever waits for another.
#
# Three more options from deck [003] change the inputs of this table:
#
# | option | what changes |
# |---|---|
# | move data augmentation to separate nodes | a part of `cpu_s` becomes `wait_s` |
# | move I/O to a separate node | `disk_s` becomes `wait_s`; the network carries samples as well as gradients |
# | use RDMA | the network card writes into memory without the CPU: receiving takes no `cpu_s`, but `wait_s` stays |
#
# If 30 of the 40 ms move to another node, the cores allow 800 batches/s, and the step is the limit, at 250 batches/s.
#
# The next picture shows which part waits for which. **Predict** how many workers are enough if a batch takes 8 ms to
# decode and a step takes 4 ms. Then drag the sliders: beyond how many workers is there no further gain, and what is
# fully used then, the step or the four cores?

# %%
predict("enough_here", "With 8 ms and 4 ms, it is enough to have", unit="workers")

# %%
from edl_labs.ui.loader_widget import LoaderExplorer

LoaderExplorer(cores=4)

# %%
with reveal_prediction("enough_here") as truth:
    print("with two workers, two batches are decoded in 8 ms, and two steps take 8 ms:")
    print("the step is fully used first")
    truth(8 / 4)

# %% [markdown]
# Now compare a real `DataLoader` with your function: `cpu_s` is the sum of your ladder for a batch, and `cores` is the
# number of cores that this process may use. **Predict** the rate with one worker and with two. Four loaders run for two
# seconds each; including their start, this takes about 15 seconds.

# %%
predict("one_worker", "One worker makes", unit="batches/s")
predict("two_workers", "Two workers make", unit="batches/s")

# %%
from edl_labs.pipeline import ImageDataset, collate, run_loader, usable_cores

here = {"cores": usable_cores(), "cpu_s": 8 * ladder.worker_s, "step_threads": 0}
here |= {"wait_s": 0.0, "disk_s": 1e-9, "step_s": 1e-9}
in_eights = {"batch_size": 8, "collate": collate}

# %%
with (
    requires_solution("predict_workers"),
    reveal_prediction("one_worker", "two_workers") as truth,
):
    print("measured here in batches/s, with batches of 8 and no training step:")
    runs, data = {}, ImageDataset(raw)
    for workers in progress_bar((0, 1, 2, 4), "loaders"):
        bound, limit = predict_workers(workers, here)
        run = run_loader(data, workers=workers, seconds=seconds, **in_eights)
        runs[workers] = run.sample_per_s / 8
        print(f"workers: {workers}, your bound {bound:6.1f} ({limit}),", end=" ")
        print(f"measured {runs[workers]:6.1f}")
    truth(one_worker=runs[1], two_workers=runs[2])

# %% [markdown]
# A real loader usually stays below the bound: batches are passed through shared memory, the main process needs a core
# too, and cores that share caches and memory slow each other down. (If it is above the bound, the ladder was measured
# at a busy moment.) `edl_labs.pipeline.LoaderModel` includes these effects as terms, each of which is measured. Look at
# four workers if you have two cores: with more workers than cores, nothing becomes faster, and each worker costs memory
# and time to start.

# %% [markdown]
# Workers can surprise you in other ways too. **Predict**, then run:
#
# * A data set creates its random generator in `__init__`. Two workers draw 64 numbers in all: how many of them are
#   different?
# * How long does a worker take to start if it is *forked* (a copy of this process), and if it is *spawned* (a new
#   interpreter that imports torch)? Which of the two finds a class that was defined in a notebook cell?
# * A forked worker only *reads* a list of 200,000 numbers that it shares with its parent. How much memory does that
#   cost?

# %%
predict("different", "Different numbers among the 64:", unit="numbers")
predict("spawn_start", "A spawned worker starts in", unit="s")
predict("list_costs", "Reading the list costs a worker", unit="MB")

# %%
from edl_labs.errors import EdlError
from edl_labs.pipeline import main_dataset, seed_report, start_cost_s

with reveal_prediction("different") as truth:
    for source in ("shared", "worker"):
        seeds = seed_report(source)
        again = f"{seeds.repeated_next_epoch} of them repeat in the next epoch"
        told = f"{seeds.different} of {seeds.drawn} numbers are different"
        print(f"generator {source:>6}: {told}, {again}")
        truth(**({"different": seeds.different} if source == "shared" else {}))
    print("each worker got a copy of the shared generator")

# %%
with reveal_prediction("spawn_start") as truth:
    for method in ("fork", "spawn"):
        try:
            start_s, works = start_cost_s(method), main_dataset(method).works
            told = f"a class from a cell {'is found' if works else 'is not found'}"
            print(f"{method:>16}: starts in {units.seconds(start_s)}; {told}")
            truth(**({"spawn_start": start_s} if method == "spawn" else {}))
        except EdlError as error:
            print(f"{method:>16}: {error.what}")

# %%
from edl_labs.pipeline import private_growth_bytes, shared_memory

numbers = range(10**6, 10**6 + 200_000)
with reveal_prediction("list_costs") as truth:
    for kind, kept in (("list", list(numbers)), ("array", np.array(numbers))):
        try:
            grown = private_growth_bytes(kept)
            cost = units.byte_count(grown)
            print(f"reading 200,000 numbers of the {kind} costs a worker {cost}")
            print("(reading a Python object changes its reference count:")
            print("the page is copied)")
            truth(**({"list_costs": grown} if kind == "list" else {}))
        except EdlError as error:
            print(f"left out here: {error.what}")

# %%
print("8 workers, batches of 64 photographs of 224 × 224:")
print(shared_memory(64 * 3 * 224 * 224, workers=8))

# %% [markdown]
# Part of the augmentation may be lost without any error. (With `persistent_workers=True`, the workers are not started
# again in the next epoch, but two workers still have copies of the same generator.) Seed from `torch.initial_seed()`,
# which is different for each worker and each epoch. A spawned worker imports everything again and does not have the
# definitions from a notebook's cells: put the class into a file. Store large lists as arrays. The last cell's figure
# matters in containers, which often have only 64 MB of shared memory: if there is no room left, a worker crashes with a
# bus error.

# %% [markdown]
# ## 3. Batches without air
#
# Sequences have different lengths, but a tensor has one shape: the difference is padding. Deck [000] advises padding in
# `collate_fn` instead of padding the whole data set, and bucketing by length. So choose which sequences share a batch.
# **Predict:** the lengths are distributed like those of text (lognormal). What share of all positions is padding if the
# whole data set is padded to its longest sequence? What share is it if each random batch of 16 is padded to its own
# longest sequence? And if the batches are made from sorted sequences?

# %%
predict("pad_all", "If all are padded to the longest, padding is", unit="%")
predict("pad_random", "In random batches of 16, padding is", unit="%")
predict("pad_sorted", "In batches of sorted sequences, padding is", unit="%")

# %%
lengths = [
    max(1, int(n)) for n in np.random.default_rng(1).lognormal(4.2, 0.7, size=4000)
]


def padding_share(batches):
    asked = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    return 1 - sum(lengths[i] for batch in batches for i in batch) / asked


shuffled = random.Random(0).sample(range(4000), 4000)

# %%
with reveal_prediction("pad_all", "pad_random", "pad_sorted") as truth:
    shares = {"padded to the longest of all": padding_share([shuffled])}
    by_length = sorted(shuffled, key=lengths.__getitem__)
    for name, order in (("random batches", shuffled), ("sorted by length", by_length)):
        in_batches = [order[i : i + 16] for i in range(0, 4000, 16)]
        shares[name] = padding_share(in_batches)
    for name, share in shares.items():
        print(f"{name}: {units.percent(share, digits=2)}")
    of_all, of_random, of_sorted = shares.values()
    truth(pad_all=of_all, pad_random=of_random, pad_sorted=of_sorted)

# %% [markdown]
# Sorting ruins the shuffle: the same sequences share a batch in every epoch, and short ones come first. Write a class
# that sits between the two:
#
# * `BucketSampler(lengths, batch_size=..., seed=...)` is its constructor; `set_epoch(epoch)` chooses the epoch (0
#   before any call). Iterating gives the batches of that epoch, each a list of indices; `len()` is the number of
#   batches.
# * Every index occurs exactly once in each epoch. All batches are full, except one that contains the rest. (Everything
#   except `__iter__` is given.)
# * **Waste**: at most half of the padding that random batches of that size have.
# * **Shuffled**, by two measures: of all pairs that share a batch in epoch 0, at most 40 % share one again in epoch 1;
#   and the longest lengths of neighbouring batches have a rank correlation of at most 0.6.
# * The same seed and epoch give the same batches, whatever was iterated before; a different epoch or seed gives
#   different batches. The global generators (of `random`, NumPy and PyTorch) keep their state.
# * `edl_labs.pipeline.bucket_batches` does much of this. Here you write it yourself: in the check, that function only
#   raises an error.


# %% solve="bucket_sampler"
class BucketSampler:
    """Batches of indices: similar lengths together, still
    shuffled, and determined only by seed and epoch."""

    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size = lengths, batch_size
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch):
        """Choose the epoch for the next iteration."""
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        """The batches of this epoch: draw only with a
        `random.Random(...)` that is made from seed and epoch."""
        ### BEGIN SOLUTION
        rng, size = random.Random(f"{self.seed} {self.epoch}"), self.batch_size
        order = rng.sample(range(len(self.lengths)), len(self.lengths))
        pool, made = 24 * size, []
        for start in range(0, len(order), pool):
            near = sorted(order[start : start + pool], key=self.lengths.__getitem__)
            made += [near[i : i + size] for i in range(0, len(near), size)]
        rng.shuffle(made)
        return iter(made)
        ### END SOLUTION


# %% check="bucket_sampler"
check("bucket_sampler")

# %% [markdown]
# The padding that remains is the price of the shuffle. Section 12 (practice) packs several sequences into each row,
# with almost no padding.

# %% [markdown]
# ## 4. Load ahead of the device
#
# Deck [003] says that I/O should overlap with training. Three things take time: the host loads a batch into pinned
# memory, a copy engine brings it to the device, and the device runs a step. One after the other, their times add up. In
# a pipeline, the slowest of the three sets the pace, and the other two are hidden.
#
# Write `feed(gpu, batches, nbytes=..., slots=..., load=..., step=...)`, which trains on batches 0, 1, …, `batches - 1`
# in order on a `VirtualGPU` and returns when the device is done:
#
# * `load(buffer, i)` keeps the host busy and fills a host buffer with batch i; `step(buffer, i)` launches the step for
#   batch i in the current stream, and that step reads the device buffer `buffer`.
# * You may allocate `slots` batches of pinned memory and `slots` batches on the device, but not a whole epoch.
# * You can use `gpu.host_empty(nbytes, pin_memory=True)`, `gpu.empty(nbytes)`, `gpu.copy(dst, src, non_blocking=True)`,
#   `s = gpu.Stream()`, `with gpu.stream(s):`, `gpu.current_stream()`, `event = gpu.Event()`, `event.record(stream)`
#   (without a stream: in the current one), `s.wait_event(event)`, `event.synchronize()` (the host waits),
#   `gpu.synchronize()`.
# * A wait for an event that was never recorded ends at once, as in CUDA. This happens the first time a slot is used.
#   Streams wait for each other only if an event makes them wait; this is true for the default stream, too.
#
# The buffers, streams, events and the loop are given. You decide where to wait, and for what.
#
# Your time must be within 5 % of the ideal, in which each of the three continues as soon as it can. The check replays
# your program and follows every byte. If an operation comes late enough only by chance, that is a race. **Predict:**
# how many slots does this need, and what would more slots gain?

# %%
predict("slots_needed", "On each side, it needs", unit="slots")


# %% solve="overlap_plan"
def feed(gpu, batches, *, nbytes, slots, load, step):
    """Load, copy and step every batch in order, with all three
    overlapping, and with `slots` buffers on each side."""
    pinned = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
    inside = [gpu.empty(nbytes) for _ in range(slots)]
    copied, done = ([gpu.Event() for _ in range(slots)] for _ in range(2))
    copies, steps = gpu.Stream(), gpu.Stream()
    for batch in range(batches):
        slot = batch % slots
        ### BEGIN SOLUTION
        if batch >= slots:
            copied[slot].synchronize()
            copies.wait_event(done[slot])
        load(pinned[slot], batch)
        with gpu.stream(copies):
            gpu.copy(inside[slot], pinned[slot], non_blocking=True)
            copied[slot].record()
        steps.wait_event(copied[slot])
        with gpu.stream(steps):
            step(inside[slot], batch)
            done[slot].record()
        ### END SOLUTION
    gpu.synchronize()


# %% check="overlap_plan"
check("overlap_plan")


# %% given
def one_after_another(gpu, batches, *, nbytes, slots, load, step):
    """The plain loop: pageable memory, and a copy that the host waits for."""
    buffer, inside = gpu.host_empty(nbytes), gpu.empty(nbytes)
    for batch in range(batches):
        load(buffer, batch)
        gpu.copy(inside, buffer)
        step(inside, batch)
    gpu.synchronize()


def trained(feeding, *, slots, count=8):
    """The timeline of `count` batches of 40 MB on a
    modelled A100: 4 ms of loading, 3 ms of stepping."""
    gpu = VirtualGPU(VirtualMachine.of("A100").warm())
    load = lambda buffer, i: gpu.host_work(4e-3, writes=buffer)  # noqa: E731

    def step(buffer, i):
        gpu.launch("step", duration_s=3e-3, reads=buffer)

    feeding(gpu, count, nbytes=40_000_000, slots=slots, load=load, step=step)
    return gpu.timeline


# %%
from edl_labs.plots.timeline_picture import draw_timeline

with requires_solution("overlap_plan"), reveal_prediction("slots_needed") as truth:
    lines = {
        "one after another": trained(one_after_another, slots=1),
        "feed, 2 slots": trained(feed, slots=2),
    }
    longest_s = max(line.makespan_s for line in lines.values())
    figure, panes = style.subplots(2, 1, figsize=(9, 5))
    for axes, (name, line) in zip(panes, lines.items(), strict=True):
        title = f"{name} (modelled A100): {units.seconds(line.makespan_s)}"
        axes = draw_timeline(axes, line, end_s=longest_s, title=title)
    print("one slot is filled while the other is used, which is enough")
    print("if all batches take the same time")
    truth(2)

# %% [markdown]
# More slots are a reserve for bad moments, such as a slow read or a full disk queue, but they cost memory. They never
# make the slowest of the three faster.

# %% [markdown]
# ## 5. Whose fault is it?
#
# Deck [003] has two mock components. A *mock trainer* drops each batch: the loop then runs at the loader's rate. A
# *mock loader* gives the same batch again and again: the loop then runs at the trainer's rate. **The loader's rate
# should be the higher of the two.** If you have neither mock, use a timeline.
#
# **Predict:** a loop spends 90 % of the host's time inside `next(loader)`. Is it bound by its data?

# %%
sure = ("certainly", "not necessarily")
predict("bound_by_data", "It is bound by its data", choices=sure)

# %%
with reveal_prediction("bound_by_data") as truth:
    print("A loader that ends with a blocking copy waits there for the previous step;")
    print("the host's clock bills that to the loader.")
    truth("not necessarily")

# %% [markdown]
# Write `whose_fault(timeline)`, which returns `"data-bound"`, `"compute-bound"`, or `"balanced"` if the faster side's
# rate is at most 1.1 times the slower side's. A side's rate is the number of batches per second that it would reach
# without ever waiting, computed from the mean time of its spans.
#
# A timeline is a list of spans, which are dicts with `row`, `kind`, `start_s` and `end_s`. The rows are `"worker 0"`,
# `"worker 1"`, … (kind `"load"`, one batch each), `"host"` (kinds `"next"`, `"launch"`, `"item"`), and `"device"` (kind
# `"step"`). **Each worker's first batch does not count**: it includes the worker's start and imports. The host may also
# pause, for example to save the model: such a pause belongs to neither side's rate. (The durations of each row are
# given.) Guessing earns nothing: marks are corrected for chance.


# %% solve="whose_fault"
def whose_fault(timeline):
    """ "data-bound", "compute-bound" or "balanced", from a loop's timeline."""

    def durations(row):
        """The seconds of each span, in order, of each row whose
        name begins with `row`: {"worker 0": [...], ...}."""
        spans = {}
        for span in timeline:
            if span["row"].startswith(row):
                spans.setdefault(span["row"], []).append(
                    span["end_s"] - span["start_s"]
                )
        return spans

    ### BEGIN SOLUTION
    def batch_s(row):
        spans = durations(row)
        later = [time_s for times_s in spans.values() for time_s in times_s[1:]]
        return sum(later) / len(later) / len(spans)

    ratio = batch_s("worker") / batch_s("device")
    return (
        "data-bound"
        if ratio > 1.1
        else "compute-bound"
        if ratio < 1 / 1.1
        else "balanced"
    )
    ### END SOLUTION


# %% check="whose_fault"
check("whose_fault")

# %% [markdown]
# Now try a real loop, with two mocks and a step that sleeps: for the host, a device's step looks the same. In three
# runs, the step takes 0.3 times as long as the loader takes for a batch, exactly as long, and 4 times as long.
# **Predict** the three verdicts.

# %%
faults = ("data-bound", "balanced", "compute-bound")
predict("short_step", "With 0.3 times the loader's time, it is", choices=faults)
predict("equal_step", "With the same time, it is", choices=faults)
predict("long_step", "With 4 times the loader's time, it is", choices=faults)

# %%
from edl_labs.pipeline import sleeping_step
from edl_labs.pipeline import whose_fault as verdict_on

batch_s = 8 * ladder.worker_s


def slow_batches():
    """A loader that takes `batch_s` for a batch and uses no core."""
    for batch in range(40):
        sleeping_step(batch_s)(batch)
        yield batch


# %%
cost = {"batches": 15, "budget_s": 3 * seconds}
with reveal_prediction("short_step", "equal_step", "long_step") as truth:
    print(f"the loader takes {units.seconds(batch_s)} per batch")
    for name, times in (("short_step", 0.3), ("equal_step", 1), ("long_step", 4)):
        step_s = times * batch_s
        fault = verdict_on(slow_batches, sleeping_step(step_s), **cost)
        gains = f"with data for free {fault.gain_if_loader_free:.2f}x as fast, "
        gains += f"with a free step {fault.gain_if_step_free:.2f}x"
        print(f"step {units.seconds(step_s)}: {fault.verdict}; {gains}")
        truth(**{name: fault.verdict})

# %% [markdown]
# This loop loads and steps in turn, so *both* fixes gain something; a loop with a prefetcher gains only if its slower
# side is fixed. That is why there are two questions: which side is slower, and what would fixing it gain?

# %% [markdown]
# ## 6. The decoder
#
# Deck [000] says that `PIL.Image.open` can be highly inefficient, and names three alternatives. Pillow-SIMD is a fork
# of old versions of Pillow with vector instructions for resizing; nvJPEG, which DALI uses, decodes on the GPU, and
# needs one (`torchvision.io.decode_jpeg(..., device="cuda")` calls it).
#
# The next cells compare `pillow`, `simplejpeg`, `torchvision`, `opencv`, `kornia-rs` and `imagecodecs`, if they are
# installed; nearly all of them are built on libjpeg-turbo. They compare the decoded pictures first and the speeds
# second: a decoder that is faster because it does less is not a fair rival. **Predict** which of those that are
# installed here is fastest, alone and in a loader with two workers. The measurement takes about 15 seconds.

# %%
from edl_labs.pipeline import agreement, decoders, missing_decoders

predict("best_alone", "Fastest alone is", choices=tuple(decoders()))
predict("best_of_two", "Fastest in the loader is", choices=tuple(decoders()))


# %%
def rates_of(name, decode):
    """Images per second: alone in one thread, and in a loader with two workers."""
    some = photos.samples[:24]
    alone = len(some) / timed(lambda: [decode(photo) for photo in some])
    data = ImageDataset(raw, decoder=name)
    run = run_loader(data, workers=2, seconds=seconds / 2, **in_eights)
    return alone, run.sample_per_s


# %%
same = {one.name: one.agrees for one in agreement(photos.samples[:4])}
with reveal_prediction("best_alone", "best_of_two") as truth:
    rates = {}
    print("     decoder  same image    alone  2 workers   measured here, images/s")
    for name, decode in progress_bar([*decoders().items()], "decoders"):
        alone, together = rates[name] = rates_of(name, decode)
        agrees = "yes" if same.get(name, True) else "no"
        print(f"{name:>12} {agrees:>11} {alone:>8.0f} {together:>10.0f}")
    best = [max(rates, key=lambda name, at=at: rates[name][at]) for at in (0, 1)]
    truth(best_alone=best[0], best_of_two=best[1])
for name, why in missing_decoders().items():
    print(f"{name:>12} is left out: {why}; next: pip install 'edl-labs[data,vision]'")

# %% [markdown]
# The fastest decoder in one thread need not be the fastest in the loader, where each worker runs its own copy. A
# decoder that starts its own threads shares the cores with the other copies, large buffers compete for memory
# bandwidth, and an output in BGR or in a special image object must be converted. Besides, decoding is only one of
# several stages. If it takes half of a worker's time, a decoder that is twice as fast makes the loader a third faster;
# if the disk or the step is the limit, it changes nothing. So check that the outputs agree, and time each candidate in
# the real loader, with several numbers of workers.

# %% [markdown]
# ## 7. Decode once
#
# Deck [000] advises: for images, apply non-random heavy processing *before* training. Work that is done once costs time
# once, not in every epoch. But a transform may be done in advance only if the model still gets the same inputs. A chain
# is a list of transforms. Each has a `name`, a `kind`, and a flag `random`, which says whether it is drawn again for
# each sample. These are the kinds:
#
# | kind | what it does | examples |
# |---|---|---|
# | `"decode"` | bytes become pixels; always first, never random | |
# | `"point"` | applies the same function to each pixel's value, wherever the pixel is | gamma, clip, brightness |
# | `"move"` | moves pixels to other places, without changing or losing any | flip, quarter turn |
# | `"cut"` | keeps only a window of the image | crop |
# | `"mix"` | makes each pixel from several neighbours | resize, blur |
# | `"whole"` | changes each pixel using a statistic of all pixels | subtract the image's own mean |
#
# The names are examples; **only kind and `random` count**, and your answer must be right for *every* transform of that
# kind. **Predict:** for how many pairs of kinds is the result the same in either order? The next cells try two examples
# of each kind. A pair of kinds does not count if the results differ for any of its examples.

# %%
predict("pairs", "The result is the same in either order for", unit="pairs of kinds")

# %% given
EXAMPLES = {
    "point": [np.square, lambda x: np.minimum(x + 0.3, 1)],
    "move": [lambda x: x[:, ::-1], np.rot90],
    "cut": [lambda x: x[:5, :5], lambda x: x[2:7, 1:6]],
    "mix": [
        lambda x: (x + np.roll(x, 1, axis=1)) / 2,
        lambda x: x[::2, ::2] / 2 + x[1::2, 1::2] / 2,
    ],
    "whole": [lambda x: x - x.mean(), lambda x: x / x.max()],
}


def same_in_either_order(first, second, image):
    """Whether two transforms give the same pixels in both orders."""
    try:
        one, other = second(first(image)), first(second(image))
    except ValueError:
        return False
    return one.shape == other.shape and np.allclose(one, other)


# %%
image = np.random.default_rng(0).random((8, 8))


def always_same(firsts, seconds):
    """Whether all these pairs give the same pixels in both orders."""
    pairs = [(a, b) for a in firsts for b in seconds if a is not b]
    return all(same_in_either_order(a, b, image) for a, b in pairs)


# %%
with reveal_prediction("pairs") as truth:
    count = 0
    print("same in either order?", *(f"{kind:>7}" for kind in EXAMPLES))
    for kind, firsts in EXAMPLES.items():
        always = [always_same(firsts, seconds) for seconds in EXAMPLES.values()]
        count += sum(always)
        print(f"{kind:>21}", *(f"{'always' if yes else '.':>7}" for yes in always))
    truth(count / 2)  # each stands in the table twice

# %% [markdown]
# Now take a whole chain, in the order in which the loader applies it. Write `move_offline(chain)`, which returns a list
# of the places (counted from 0) of all transforms that may be done once, before training. All the others stay in the
# loader, in their order. Move every transform that may move.


# %% solve="decode_once"
def move_offline(chain):
    """The places of all transforms that may be done once
    without changing the model's inputs."""
    ### BEGIN SOLUTION
    swaps = ({"point", "move"}, {"point", "cut"}, {"whole", "move"})
    offline, staying = [], []
    for place, transform in enumerate(chain):
        kind = transform["kind"]
        if transform["random"] or any({kind, other} not in swaps for other in staying):
            staying.append(kind)
        else:
            offline.append(place)
    return offline
    ### END SOLUTION


# %% check="decode_once"
check("decode_once")

# %% [markdown]
# A transform that stays in the loop may still run in different places:
#
# * in the workers;
# * in the main process, where it delays every step;
# * on the device (kornia, DALI, `torchvision.transforms.v2` on tensors that are already there): this is free as long as
#   the device has time to spare, but it has none if training is compute-bound;
# * on another node, which then sends pixels instead of files over the network that gradients use, too.
#
# Not everything that may move should. Decoded pixels are eight to twenty times as large as the JPEG, and pixels
# normalised to float32 are another four times as large: the processor has less to do, but the disk must deliver
# more bytes. *Resize* is the usual winner: it reduces both the data and the decoder's work. But look at the effect of a
# random crop before it: the resize, and everything that follows, has to stay in the loader.

# %% [markdown]
# ## 8. Your plan on this disk, and the choice of a format
#
# First, run your plan from section 1 on this machine's disk. A file has 2048 parts of 16 kB, and half of them are
# wanted. Reading the whole file in one read shows the disk's rate. Reading the wanted parts in the requested order
# shows how much time each seek adds. **Predict:** if you plan with these two figures, how many reads are
# left, and how much faster is the plan?

# %%
predict("reads_left", "Of the 1024 reads, the plan leaves", unit="reads")
predict("plan_gain", "The speedup of the plan is", unit="times")


# %% given
def reading_s(path, reads):
    """Seconds that `reads`, a list of (shard, start, stop), take
    from the file `path`, and what was in memory before them."""
    state = make_cold(path)
    with open(path, "rb", buffering=0) as file:

        def read_all():
            for _, start, stop in reads:
                file.seek(start)
                file.read(stop - start)

        return timed(read_all), state


# %%
parts, part, whole = 2048, 1 << 14, Path(scratch.name) / "parts.bin"
whole.write_bytes(random.Random(1).randbytes(parts * part))
asked = scattered_parts(parts // 2, of=parts, nbytes=part)
whole_s = reading_s(whole, [(0, 0, parts * part)])[0]
asked_s, state = reading_s(whole, asked)
print(f"measured here, {state}:")
print(f"{len(asked)} reads in the requested order take {units.seconds(asked_s)}")
measured_rate = parts * part / whole_s
measured_seek_s = max(0.0, asked_s / len(asked) - part / measured_rate)
worth = units.byte_count(measured_seek_s * measured_rate)
seek = units.seconds(measured_seek_s)
rate = units.byte_rate(measured_rate)
print(f"in the time of a seek, {seek}, the disk reads {worth} at {rate}")

# %%
with (
    requires_solution("read_plan"),
    reveal_prediction("reads_left", "plan_gain") as truth,
):
    plan = read_plan(asked, seek_s=measured_seek_s, byte_per_s=measured_rate)
    planned_s, state = reading_s(whole, plan)
    took = units.seconds(planned_s)
    print(f"measured here, {state}: the {len(plan)} reads of your plan take {took}")
    truth(reads_left=len(plan), plan_gain=asked_s / planned_s)

# %% [markdown]
# If the state is cold, a good plan reads more bytes in less time, according to the disk's own figures. If it is warm,
# there is almost nothing to save: memory has no head to move.

# %% [markdown]
# The other question is how the samples are stored. A *format* decides how many files there are, how small a read can
# be, and how long it takes to turn the bytes into an array. According to deck [000], raw files are easy to look at but
# storage-inefficient; Arrow, Protobuf and msgpack are for structured data, and token ids are for text. (A text is
# tokenized once. Its ids go into one long array, two bytes each for a vocabulary of up to 65 536, so 10⁹ tokens take 2
# GB. `np.memmap` opens the file without reading it; a sequence is a slice of the array, nothing is parsed, and workers
# share its pages in memory.) Which format is best depends on how it is *read*. The cost of a format is:
#
# | | `access["order"] == "sequential"` | `"random"` |
# |---|---|---|
# | samples read per epoch | `access["samples"]`, which is all of them | `access["reads"]` |
# | bytes fetched per sample read | `form["sample_bytes"]` | the same, but at least `form["unit_bytes"]` |
# | seeks per epoch, `disk["seek_s"]` each | 1 | one for each sample read |
#
# * If `form["columnar"]`, only a share `access["column_share"]` of a sample's bytes is fetched (but at least one unit
#   if the order is random).
# * Each sample read costs `form["opens_per_sample"] * disk["open_s"] + form["parse_s"]` of processor time, in every
#   epoch.
# * The disk reads at `disk["byte_per_s"]`. If the whole data set as stored (all samples with all columns) fits into
#   `disk["cache_bytes"]` (an equal size fits), only the first of the `access["epochs"]` epochs reads from the disk;
#   otherwise every epoch does.
# * Processor and disk do not overlap here: the cost is the sum of both times over all epochs.
#
# Write `format_cost_s(form, access, disk)` → seconds, and `pick_format(forms, access, disk)` → the `name` of the
# cheapest format. **Predict** what kind of format wins in each of three situations: reading one small column of a table
# sequentially; reading single samples in random order from a network store; reading a data set that fits into memory.

# %%
predict("winners", "The winners are")


# %% solve="storage_format"
def format_cost_s(form, access, disk):
    """Seconds that all epochs of `access` take in the format `form` on `disk`."""
    ### BEGIN SOLUTION
    is_random = access["order"] == "random"
    reads = access["reads"] if is_random else access["samples"]
    fetched = form["sample_bytes"] * (access["column_share"] if form["columnar"] else 1)
    if is_random:
        fetched = max(fetched, form["unit_bytes"])
    seeks = reads if is_random else 1
    disk_s = seeks * disk["seek_s"] + reads * fetched / disk["byte_per_s"]
    cpu_s = reads * (form["opens_per_sample"] * disk["open_s"] + form["parse_s"])
    is_cached = access["samples"] * form["sample_bytes"] <= disk["cache_bytes"]
    return access["epochs"] * cpu_s + (1 if is_cached else access["epochs"]) * disk_s
    ### END SOLUTION


def pick_format(forms, access, disk):
    """The name of the cheapest of `forms`."""
    ### BEGIN SOLUTION
    return min(forms, key=lambda form: format_cost_s(form, access, disk))["name"]
    ### END SOLUTION


# %% check="storage_format"
check("storage_format")

# %%
with reveal_prediction("winners"):
    print("one column in sequence: a format that stores columns")
    print("single samples from afar: one that reads little at a time, in one open file")
    print("in memory: the one that opens and parses least")

# %% [markdown]
# Now measure. The next cells write the same JPEGs as `raw` (one file each), `tar`, `parquet`, `arrow`, `lmdb`, `hdf5`,
# `npy` and `msgpack`, if the libraries are installed, and read each format cold. **Predict** which of them is fastest
# when it is read from beginning to end, and which is fastest in random order. Next to each rate is the state of the
# cache after `make_cold`: compare only rates with the same state.

# %%
from edl_labs.pipeline import FORMATS

predict("best_scan", "Fastest from beginning to end is", choices=tuple(FORMATS))
predict("best_random", "Fastest in random order is", choices=tuple(FORMATS))


# %%
def cold_rate(kept, read):
    """Samples per second of `read`, and the state of the cache before it, as text."""
    kept.close()  # what is still mapped into memory cannot be dropped
    state = make_cold(kept.paths).word
    return f"{images / timed(read):>6.0f} {state:<7}"


# %%
def rates_of_format(form):
    """A format's files, size and both cold rates, as text."""
    with write(photos, Path(scratch.name) / f"as {form}", format=form) as kept:
        scan = cold_rate(kept, lambda: sum(map(len, kept.scan())))
        drawn = cold_rate(kept, lambda: kept.read_many(mixed))
        size = units.byte_count(kept.nbytes)
        return f"{len(kept.paths):>6}", f"{size:>8}", scan, drawn


def fastest_of(rows, column):
    """The format with the largest rate in a column."""
    return max(rows, key=lambda form: float(rows[form][column].split()[0]))


# %%
with reveal_prediction("best_scan", "best_random") as truth:
    rows = {}
    print("  format  files     size           scan         random   samples/s, here")
    for form in FORMATS:
        try:
            rows[form] = rates_of_format(form)
            print(f"{form:>8}", *rows[form])
        except EdlError as error:
            print(f"{form:>8} is left out: {error.what}; next: {error.next}")
    truth(best_scan=fastest_of(rows, 2), best_random=fastest_of(rows, 3))

# %% [markdown]
# The gap between the two columns is the price of random access. A shared file system also suffers from a large number
# of files. Here the differences may be small: a few megabytes on a fast disk do not show what a terabyte on a network
# would. That is what the cost function is for.

# %% [markdown]
# ## 9. From naive to tuned
#
# The last measurement runs on this machine. A loop trains on photographs; its step takes 5 ms on a device for a batch
# of 8 (here, the step sleeps and uses no core). The loader has five versions:
#
# 1. photographs of 750 × 1000, decoded by Pillow in the main process;
# 2. the fastest decoder that is installed here;
# 3. images resized once, before training (here, they are generated at 256 × 342), as deck [000] advises for heavy
#    non-random processing (section 7 says what else may be done once);
# 4. one worker, so that loading and the step overlap;
# 5. as many workers as there are cores.
#
# **Predict** the rates of all five. The cells below make two sets of images and run eight loaders for two seconds each,
# which takes about half a minute.

# %%
predict("naive_rate", "Version 1 loads", unit="samples/s")
predict("decoder_rate", "Version 2 loads", unit="samples/s")
predict("resized_rate", "Version 3 loads", unit="samples/s")
predict("one_beside", "Version 4 loads", unit="samples/s")
predict("all_beside", "Version 5 loads", unit="samples/s")

# %%
large = write(
    image_set(max(16, images // 4), size=(750, 1000)),
    Path(scratch.name) / "large",
    format="raw",
)
small = write(
    image_set(images, size=(256, 342)), Path(scratch.name) / "small", format="raw"
)

# %%
fastest = min(
    decoders(),
    key=lambda name: (
        measure_ladder(image_stages(raw, decoder=name)[:3], range(8))["decode"].alone_s
    ),
)
versions = [
    ("naive", large, "pillow", 0),
    (fastest, large, fastest, 0),
    ("resized once", small, fastest, 0),
]
versions += [
    (f"workers: {n}", small, fastest, n)
    for n in dict.fromkeys((1, max(2, usable_cores())))
]


# %%
def rate_of(version, step_s=0.0):
    """Samples per second of a version of the loader, with or without a step."""
    _, kept, decoder, workers = version
    data = ImageDataset(kept, decoder=decoder)
    more = {"step": sleeping_step(step_s)} if step_s else {}
    run = run_loader(data, workers=workers, seconds=seconds, **more, **in_eights)
    return run.sample_per_s


# %%
def draw_story(story, ends, of_step):
    """The five rates, and those of the step alone and the last loader alone."""
    _, axes = style.subplots(figsize=(9, 3.2))
    bars = axes.barh(list(story), list(story.values()), label="measured here")
    axes.bar_label(bars, fmt=" %.0f", color=style.TEXT)
    axes.axvline(of_step, color=style.GREY, ls="--", label="the step alone")
    alone = {"color": style.GREY, "alpha": 0.3, "label": "the last loader alone"}
    axes.axvspan(*ends, **alone)
    axes.invert_yaxis()
    axes.set(xlabel="samples/s", title="From naive to tuned (measured here)")
    with style.look():
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


# %%
five = ("naive_rate", "decoder_rate", "resized_rate", "one_beside", "all_beside")
with reveal_prediction(*five) as truth:
    story = {one[0]: rate_of(one, 5e-3) for one in progress_bar(versions, "loaders")}
    low, _, high = sorted(rate_of(versions[-1]) for _ in range(3))
    draw_story(story, (low, high), 8 / 5e-3)
    print(f"the last loader alone, three runs: {low:.0f} to {high:.0f} samples/s;")
    print(f"the step alone: {8 / 5e-3:.0f} samples/s")
    truth(**dict(zip(five, story.values(), strict=True)))

# %% [markdown]
# Read the picture with the whole lab in mind: what was gained by doing less work (a better decoder, work done once),
# and what by doing work at the same time (workers)? Two ceilings are drawn: the step alone, and the last loader alone,
# which is a band because its rate varies from run to run, as your bars do. Usually the lower ceiling is the limit. A
# loop that reaches 90 % of it is tuned; the rest is lost in passing batches from process to process. If the step used
# the same cores as the loader, the band itself would drop; section 2 says how far.

# %% [markdown]
# ## 10. Practice: the stage ladder, from cold
#
# Everything from here on is optional and carries no points.
#
# Section 2 measured a ladder with warm files. Here you write your own, with two figures for each stage: *alone*, and
# *cumulative*, which means together with all stages before it, sample by sample, as the loader runs them. Both start
# **from cold**, and are in seconds per sample. **Predict:** is the cumulative time always the sum of the times alone?

# %%
predict("adds_up", "The times alone add up", choices=("always", "not always"))

# %% [markdown]
# You control a `VirtualWorkers`: a model of a machine that loads data, with cores, disks, a page cache and workers, on
# a virtual clock. `vw.now_s()` reads its clock, `vw.drop_cache()` makes every page cold. `stages` is a list of `(name,
# function)`; `function(sample)` runs that stage for one sample (numbered from 0) on `vw`, and returns when it is done.
# Write `stage_ladder(vw, stages, samples=...)` → a list of `(name, alone_s, cumulative_s)`, one for each stage. The
# times must be accurate to within 3 %; the check replays what you did. For each figure, take **one pair of clock
# readings around all samples**, and divide their difference by the number of samples. The check rejects the mean of two
# runs, and sums of separate readings for each sample.


# %% solve="stage_ladder"
def stage_ladder(vw, stages, *, samples):
    """(name, alone_s, cumulative_s) for each stage: seconds per
    sample from cold, alone and with all stages before it."""

    ### BEGIN SOLUTION
    def cold_s(functions):
        vw.drop_cache()
        began_s = vw.now_s()
        for sample in range(samples):
            for function in functions:
                function(sample)
        return (vw.now_s() - began_s) / samples

    functions = [function for _, function in stages]
    return [
        (name, cold_s(functions[i : i + 1]), cold_s(functions[: i + 1]))
        for i, (name, _) in enumerate(stages)
    ]
    ### END SOLUTION


# %% check="stage_ladder"
check("stage_ladder")


# %%
def reads_of(vw, name, nbytes):
    """A stage that reads its own file in order, `nbytes` per sample."""
    file = vw.file(50 * nbytes, name=name)
    return lambda i: vw.read(file, offset=nbytes * i, nbytes=nbytes)


# %%
with requires_solution("stage_ladder"), reveal_prediction("adds_up") as truth:
    vw = VirtualWorkers(LoaderMachine(disks=(HDD,), cache_bytes=1 << 33))
    stages = [
        ("read picture", reads_of(vw, "pictures", 200_000)),
        ("read label", reads_of(vw, "labels", 100_000)),
        ("decode", lambda i: vw.work("decode", 5e-3)),
    ]
    for name, *times_s in stage_ladder(vw, stages, samples=50):
        alone, cumulative = map(units.seconds, times_s)
        print(f"{name:>12}: alone {alone:>8}, cumulative {cumulative:>8}")
    print("together, the disk's head moves to the other file and back for every sample")
    truth("not always")

# %% [markdown]
# A ladder of times alone would have suggested that decoding is the bottleneck. And a ladder that is run twice without
# dropping the cache would have suggested that the disk is free.

# %% [markdown]
# ## 11. Practice: pad in `collate_fn`
#
# Section 3 counted padding; here you add it yourself. Deck [002] advises padding a sequence's length to a multiple of
# 16 in fp16 (or of 32), and the mini-batch to a multiple of 8, so that tensor cores can divide them into whole tiles.
#
# Write `collate_pad(sequences, pad_id=..., multiple=...)` → `(tokens, mask)`: two torch tensors, `int64` and `bool`,
# with one row for each sequence (a list of numbers). They are as wide as the longest sequence, rounded up to a multiple
# of `multiple`. The mask is true where there is a token.


# %% solve="collate_pad"
def collate_pad(sequences, *, pad_id, multiple):
    """(tokens, mask) of a batch, padded to its longest sequence, rounded up."""
    ### BEGIN SOLUTION
    longest = max(len(sequence) for sequence in sequences)
    width = (longest + multiple - 1) // multiple * multiple
    tokens = torch.full((len(sequences), width), pad_id, dtype=torch.long)
    mask = torch.zeros(len(sequences), width, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
        mask[row, : len(sequence)] = True
    return tokens, mask
    ### END SOLUTION


# %% check="collate_pad"
check("collate_pad")

# %% [markdown]
# ## 12. Practice: pack them instead
#
# A row that is full has no padding. *Packing* puts several sequences into one row of fixed capacity, one after the
# other. *First-fit-decreasing* takes the longest sequence first, and puts each into the **first** row that has room.
# Searching row after row takes O(n²) looks. With a tree over the rows, in which every node stores the most room of any
# row below it, O(n log n) looks are enough.
#
# `tree = BinTree(capacity, bins=n)` is that tree, with an empty row (a *bin*) for every sequence. `tree.room(node)`
# looks at a node and returns the most room below it (1 is the root, `2 * n` and `2 * n + 1` are the children of n, row
# i is node `tree.leaves + i`); `tree.put(row, length)` puts a sequence into a row. Both calls are recorded. The check
# replays them and counts your looks: at most 3 n log₂ n are allowed. **Your looks must prove** that no earlier row had
# room. Write
#
# * `pack_sequences(lengths, tree)` → a list of rows, each a list of indices; leave out rows that stayed empty. A
#   sequence longer than `tree.capacity` raises a `ValueError` that names its index (this part is given);
# * `packed_mask(lengths, capacity)` → for sequences of those lengths in one row, a bool tensor of capacity × capacity:
#   may position i (the row) look at position j? A position looks at itself and at earlier positions of its own
#   sequence; padding looks at nothing, and nothing looks at it. If only the mask is wrong, you keep half of the credit.
#
# **Predict:** if a row has room for exactly the longest of the 4000 sequences from section 3, what share of all
# positions will be padding?

# %%
predict("pad_packed", "In packed rows, padding is", unit="%")


# %% solve="pack_sequences"
def pack_sequences(lengths, tree):
    """Rows of indices, first-fit-decreasing, in O(n log n) looks at the tree."""
    for index, length in enumerate(lengths):
        if length > tree.capacity:
            raise ValueError(
                f"sequence {index} has {length} tokens, "
                f"and a row has room for {tree.capacity}"
            )
    rows = {}  # a row's number: the indices in it
    ### BEGIN SOLUTION
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True):
        node = 1
        while node < tree.leaves:
            node = 2 * node if tree.room(2 * node) >= lengths[index] else 2 * node + 1
        tree.put(node - tree.leaves, lengths[index])
        rows.setdefault(node - tree.leaves, []).append(index)
    ### END SOLUTION
    return [rows[place] for place in sorted(rows)]


def packed_mask(lengths, capacity):
    """The mask of a row: whether position i may look at position j, at [i, j]."""
    # The number of each position's sequence, -1 for padding.
    owner = torch.full((capacity,), -1)
    owner[: sum(lengths)] = torch.repeat_interleave(
        torch.arange(len(lengths)), torch.tensor(lengths)
    )
    ### BEGIN SOLUTION
    is_own = (owner[:, None] == owner[None, :]) & (owner[:, None] >= 0)
    return is_own & torch.ones(capacity, capacity, dtype=torch.bool).tril()
    ### END SOLUTION


# %% check="pack_sequences"
check("pack_sequences")

# %%
with requires_solution("pack_sequences"), reveal_prediction("pad_packed") as truth:
    tree = BinTree(max(lengths), bins=len(lengths))
    rows = pack_sequences(lengths, tree)
    looks = sum(len(action) == 1 for action in tree.program)
    wasted = 1 - sum(lengths) / (len(rows) * tree.capacity)
    padding = f"{units.percent(wasted, digits=2)} of all positions are padding"
    print(f"{len(lengths)} sequences in {len(rows)} rows, {padding}, {looks} looks")
    truth(wasted)
    along = sum(range(len(rows))) / len(rows) * len(lengths)
    print(f"looking along the rows instead: about {along:.2g} looks")

# %% [markdown]
# Packing has other costs: it needs the mask, without which a sequence would read its neighbours, and positions must
# restart at 0 in each sequence. Packing also decides only by length which sequences share a row, unless it packs one
# shuffled pool after another. Which of waste, randomness and throughput improve together, and which conflict?

# %%
from edl_labs.pipeline import frontier

by_method, longest = {}, max(lengths)
found = frontier(lengths, batch_size=16, max_tokens=4 * longest, capacity=longest)
for point in found.points:
    by_method.setdefault(point.method, []).append(point)

# %%
figure, (left, right) = style.subplots(1, 2, figsize=(9, 3.6))
for own, line in zip(by_method.values(), ("o-", "s--", "^:", "D-."), strict=False):
    method = own[0].method
    wasted = [100 * point.waste.fraction for point in own]
    left.plot(wasted, [point.randomness for point in own], line, ms=3, label=method)
    right.plot(wasted, [point.sample_per_s for point in own], line, ms=3, label=method)
left.set(ylabel="randomness within a batch", title="computed")
right.set(ylabel="samples/s", title="modelled: 1 µs per token, 2 ms per step")
for axes in (left, right):
    axes.set_xlabel("padding, % of all positions")
with style.look():
    left.legend()

# %% [markdown]
# Along each line, the pool that is sorted (or packed) at once grows from one batch to the whole data set. Less
# padding and more throughput go together, especially since each step has a fixed cost; both conflict with randomness.
# Buckets lose nearly all randomness before their padding is halved. Packing loses little, since long and short
# sequences share a row; its price is the mask, and code that can use it. No point is best for every model.

# %% [markdown]
# ## 13. Practice: a real prefetcher
#
# This is the idea of section 4 in real Python: a thread draws items from a source and puts them into a bounded queue,
# and the consumer takes them out. It takes twenty lines, and each can hide a bug. Write `Prefetcher(source,
# depth=...)`:
#
# * its thread begins at once and stays at most `depth` items ahead of the consumer (it may also hold one item that is
#   not yet in the queue);
# * iterating gives the items in their order, then ends; an item may be anything, including `0` and `None`;
# * an exception that the source raises reaches the consumer as the same object, after all items before it;
# * `close()` ends the thread, even when it waits at a full queue, and returns when the thread has ended. It may be
#   called twice, and at any time; if a consumer in another thread is waiting for an item, its wait ends.
#
# The check does not measure how fast items arrive. `queue` and `threading` are imported. Three parts are given: the
# queue, which takes pairs of a kind and a value; the event that says that `close()` was called; and the consumer, which
# checks that event again and again, so that it does not wait forever for an item that never comes. (Other structures
# are welcome.)


# %% solve="prefetcher"
# How long either side waits before it checks again whether close() was called.
LOOK_AGAIN_S = 0.02


class Prefetcher:
    """Items of `source`, drawn by a thread that stays at most `depth` ahead."""

    def __init__(self, source, *, depth):
        self._queue, self._closed = queue.Queue(depth), threading.Event()
        self._thread = threading.Thread(target=self._fill, args=(source,), daemon=True)
        ### BEGIN SOLUTION
        self._thread.start()
        ### END SOLUTION

    def _fill(self, source):
        """In the thread: put every item as ("item",
        value), then ("end", None) or ("error", error)."""
        ### BEGIN SOLUTION
        try:
            for item in source:
                if not self._put("item", item):
                    return
            self._put("end", None)
        except BaseException as error:
            self._put("error", error)
        ### END SOLUTION

    def _put(self, kind, value):
        """Put a pair as soon as there is room, and return True;
        return False as soon as close() was called."""
        ### BEGIN SOLUTION
        while not self._closed.is_set():
            try:
                self._queue.put((kind, value), timeout=LOOK_AGAIN_S)
                return True
            except queue.Full:
                pass
        return False
        ### END SOLUTION

    def __iter__(self):
        while not self._closed.is_set():
            try:
                kind, value = self._queue.get(timeout=LOOK_AGAIN_S)
            except queue.Empty:
                continue
            if kind == "item":
                yield value
                continue
            # Nothing follows the end: iterating again must not wait for an item.
            self._closed.set()
            if kind != "end":
                raise value

    def close(self):
        """Stop the thread, and return when it has stopped."""
        ### BEGIN SOLUTION
        self._closed.set()
        self._thread.join()
        ### END SOLUTION


# %% check="prefetcher"
check("prefetcher")

# %% [markdown]
# ## Where you are

# %%
Progress("lab04_data_pipelines")
