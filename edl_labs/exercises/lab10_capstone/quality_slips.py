"""Mistakes about the time to a quality: the sentence of each."""

from __future__ import annotations

STEPS = {
    "computing and moving are added": "take the longer one, because they overlap",
    "the shorter of two times is taken": "take the longer one: a step ends with it",
    "the overhead of a step is missing": "add machine['overhead_s'] once per step",
    "the wait for the sum over GPUs is missing, or hidden behind computing": (
        "with two or more GPUs, add sync_s after computing and moving"
    ),
    "a single GPU waits for a sum over GPUs": "add sync_s only for two or more GPUs",
    "the weights are moved for every sample": "move them once per step",
    "each GPU computes the whole batch": "give each GPU batch / gpus samples",
    "the weights are divided among the GPUs": "count all weights on each GPU",
    "the bytes of the samples are missing": "add the bytes that each sample moves",
    "the bytes of the weights are missing": "add the weights, which each GPU moves once per step",
}
BATCHES = {
    "throughput": (
        "the largest batch is chosen, but it does not end first",
        "in all cases your answer is the largest batch that fits: it has the most samples per second and fewest steps",
        "compare quality_s, the seconds until the quality is reached",
    ),
    "smallest": (
        "the batch with the shortest step is chosen, but it does not end first",
        "in all cases your answer is the smallest batch",
        "multiply by the number of steps: a small batch needs many more",
    ),
    "ridge": (
        "the batch at the ridge is chosen, but it does not always end first",
        "in all cases your answer is the batch for which computing takes as long as moving, or the largest that fits",
        "try all batches: an overhead favours a larger batch, and samples of many bytes a smaller one",
    ),
    "critical": (
        "the critical batch is chosen, but it does not end first",
        "it describes how the number of steps depends on the batch, but not the machine",
        "compare quality_s of each batch",
    ),
    "no memory": (
        "the batch does not fit",
        "in all cases your answer is the batch that would be best with unlimited memory",
        "allow at most machine['most_samples'] samples on each GPU",
    ),
    "memory of one": (
        "the batch is limited to the memory of one GPU",
        "in all cases your answer is the best batch that would fit on one GPU",
        "allow batches up to gpus times machine['most_samples']",
    ),
    "best of one": (
        "the best batch of one GPU is used for several GPUs",
        "in all cases your answer is the best batch of one GPU, or the next one that the GPUs can share",
        "search again for each number of GPUs: each takes batch / gpus samples, and the sum adds to each step",
    ),
}
GPUS = {
    "linear": (
        "the training time is assumed to be inversely proportional to the number of GPUs",
        "in all cases your answer is the time on one GPU divided by the deadline",
        "call quality_s, with the best batch, for each number of GPUs",
    ),
    "batch of one": (
        "one GPU's best batch is used for every number of GPUs",
        "in all cases your answer is the one for this batch, shared by the GPUs",
        "call best_batch(job, machine, gpus) for each number",
    ),
    "samples of one": (
        "every GPU is given the number of samples that is best on one GPU",
        "in all cases your answers are those for this number of samples per GPU",
        "call best_batch(job, machine, gpus) for each number",
    ),
    "shortest": (
        "the fastest number of GPUs is returned, not the fewest",
        "in all cases your answer is the number of GPUs that ends first",
        "stop at the first number that is in time",
    ),
    "last left out": (
        "machine['most_gpus'] GPUs are not tried",
        "in all cases your answers are those of a search that stops one GPU earlier",
        "include this number: range(1, n) ends before n",
    ),
    "strictly in time": (
        "a training that ends exactly at the deadline is rejected",
        "your answers are wrong only where a training ends exactly at the deadline",
        "accept it: the deadline itself is still in time",
    ),
    "one too many": (
        "more than machine['most_gpus'] GPUs are used",
        "where only one GPU more would be in time, your answer is that number",
        "try numbers up to machine['most_gpus'], and return None if none is in time",
    ),
    "none alone": (
        "a single GPU is not tried",
        "where one GPU is in time, your answer is the next number that is; all other answers are right",
        "begin with 1",
    ),
    "halved": (
        "numbers of GPUs are skipped, as if one more GPU were always faster",
        "in all cases your answers are those of a search that halves the range",
        "try every number, starting with 1: two GPUs also wait for their sum",
    ),
    "powers of two": (
        "only powers of two are tried as numbers of GPUs",
        "in all cases your answers are those of such a search, and fewer GPUs would be in time",
        "try every number, starting with 1",
    ),
}
