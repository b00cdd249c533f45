"""Mistakes about the time to a quality: the sentence of each."""

from __future__ import annotations

STEPS = {
    "computing and moving are added": "they overlap: the longer one counts",
    "the shorter of two times is taken": "a step ends with the longer",
    "what a step costs besides is left out": "machine['overhead_s'] comes on top, once a step",
    "the sum over GPUs is left out, or hidden behind computing": (
        "with two GPUs or more a step waits sync_s for it, after computing and moving"
    ),
    "a single GPU has no other to sum with": "sync_s counts from two GPUs on",
    "weights are moved for each sample": "once a step, for all",
    "each GPU takes the whole batch": "batch / gpus each",
    "weights are shared by the GPUs": "each GPU has all of them",
    "the samples' bytes are left out": "each sample moves its own, too",
    "the weights' bytes are left out": "a GPU moves its weights once a step, besides its samples",
}
BATCHES = {
    "throughput": (
        "neither most samples a second nor fewest steps end first",
        "in all cases the largest batch that fits came back; it has both, and its samples teach less",
        "seconds until the quality is reached are what counts: quality_s",
    ),
    "smallest": (
        "the shortest step does not end first",
        "in all cases the smallest batch came back",
        "its steps are short, and there are many more",
    ),
    "ridge": (
        "the batch at the ridge is not always the one that ends first",
        "that is where computing takes as long as moving",
        "an overhead makes a larger batch worth it, samples of many bytes a smaller one: try them all",
    ),
    "critical": (
        "the critical batch is not the one that ends first",
        "it says how steps depend on the batch, and nothing of the machine",
        "quality_s of each batch",
    ),
    "no memory": (
        "the batch does not fit",
        "in every case it is the best if memory had no end",
        "machine['most_samples'] is the most that one GPU holds",
    ),
    "memory of one": (
        "each GPU has memory of its own",
        "in every case the batch is the best that would fit one GPU",
        "gpus times machine['most_samples'] fit",
    ),
    "best of one": (
        "more GPUs have another best batch",
        "the best batch of one GPU came back for all",
        "each GPU takes batch / gpus samples, and the sum costs a step more",
    ),
}
GPUS = {
    "linear": (
        "GPUs do not share a training evenly",
        "the time on one GPU over the deadline came back",
        "ask quality_s, with the best batch, for each number of GPUs",
    ),
    "batch of one": (
        "each number of GPUs has a best batch of its own",
        "the deadline was asked of one GPU's best batch, shared",
        "best_batch(job, machine, gpus) for each number",
    ),
    "samples of one": (
        "each number of GPUs has a best batch of its own",
        "in all cases the answers are those of a GPU that has as many samples as are best on one GPU",
        "best_batch(job, machine, gpus) for each number",
    ),
    "shortest": (
        "the fewest GPUs are asked, not the fastest",
        "the number that ends first of all came back",
        "stop at the first that is in time",
    ),
    "last left out": (
        "machine['most_gpus'] GPUs may be used, too",
        "the answers are those of one GPU less",
        "range(1, n) ends before n",
    ),
    "strictly in time": (
        "what ends exactly at the deadline is in time",
        "all else is right, and where a training ends at the deadline another number came back",
        "by the deadline means at most as late",
    ),
    "one too many": (
        "there are no more than machine['most_gpus'] GPUs",
        "one more came back where only that many would be in time",
        "try them up to machine['most_gpus'], and return None beyond it",
    ),
    "none alone": (
        "a single GPU is not tried",
        "wherever one is in time, the next number that is came back, and all else is right",
        "begin with 1",
    ),
    "halved": (
        "one GPU more is not always faster, so numbers cannot be skipped",
        "in all cases the answers are those of a search that halves the range",
        "try every number from 1 on: two GPUs also wait for their sum",
    ),
    "powers of two": (
        "a number of GPUs need not be a power of two",
        "fewer than came back would be in time",
        "try every number from 1 on",
    ),
}
