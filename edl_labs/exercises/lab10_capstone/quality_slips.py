"""Mistakes about the time to a quality: the sentence of each."""

from __future__ import annotations

STEPS = {
    "computing and moving are added": "take the longer of the two times, because computing and moving overlap",
    "the shorter of two times is taken": "take the longer of the two times: a step ends when both have ended",
    "the overhead of a step is missing": "add machine['overhead_s'] once per step",
    "the wait for the sum over GPUs is missing, or hidden behind computing": (
        "with two or more GPUs, add sync_s after computing and moving"
    ),
    "a single GPU waits for a sum over GPUs": "add sync_s only for two or more GPUs",
    "the weights are moved for every sample": "count the weights once per step",
    "each GPU computes the whole batch": "give each GPU batch / gpus samples",
    "the weights are divided among the GPUs": "count all weights on each GPU",
    "the bytes of the samples are missing": "add the bytes that each sample moves",
    "the bytes of the weights are missing": "add the weights, which each GPU moves once per step",
}
BATCHES = {
    "throughput": (
        "the largest batch is chosen, but training does not end soonest with it",
        "in all cases your answer is the largest batch that fits: it has most samples per second and fewest steps",
        "compare what quality_s() returns, the seconds until the quality is reached",
    ),
    "smallest": (
        "the batch with the shortest step is chosen, but training does not end soonest with it",
        "in all cases your answer is the smallest batch",
        "multiply by the number of steps: a small batch needs many more steps",
    ),
    "ridge": (
        "the batch at the ridge is chosen, but training does not always end soonest with it",
        "in all cases your answer is the batch for which computing takes as long as moving, or the largest that fits",
        "try all batches: an overhead favours a larger batch, and samples with many bytes favour a smaller one",
    ),
    "critical": (
        "the critical batch is chosen, but training does not end soonest with it",
        "the critical batch describes how the number of steps depends on the batch, but not how fast the machine is",
        "compare what quality_s() returns for each batch",
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
        "in all cases your answer is the best batch for one GPU, or the next one that the GPUs can share equally",
        "search again for each number of GPUs: each GPU has batch / gpus samples, and each step also waits for the sum",
    ),
}
GPUS = {
    "linear": (
        "the training time is assumed to be inversely proportional to the number of GPUs",
        "in all cases your answer is the time on one GPU divided by the deadline",
        "for each number of GPUs, call quality_s() with the best batch for that number",
    ),
    "batch of one": (
        "one GPU's best batch is used for every number of GPUs",
        "in all cases your answer is right for that batch, shared by the GPUs",
        "call best_batch(job, machine, gpus) for each number",
    ),
    "samples of one": (
        "every GPU is given the number of samples that is best on one GPU",
        "in all cases your answers are right for that number of samples per GPU",
        "call best_batch(job, machine, gpus) for each number",
    ),
    "shortest": (
        "the fastest number of GPUs is returned, not the fewest",
        "in all cases your answer is the number of GPUs with which training ends soonest",
        "stop at the first number that meets the deadline",
    ),
    "last left out": (
        "machine['most_gpus'] GPUs are not tried",
        "in all cases your answers are those of a search that stops one GPU earlier",
        "include this number in the search: range(1, n) ends before n",
    ),
    "strictly in time": (
        "a training that ends exactly at the deadline is rejected",
        "your answers are wrong only where a training ends exactly at the deadline",
        "accept it: ending exactly at the deadline is in time",
    ),
    "one too many": (
        "more than machine['most_gpus'] GPUs are used",
        "where only machine['most_gpus'] + 1 GPUs would meet the deadline, your answer is that number",
        "try numbers up to machine['most_gpus'], and return None if none of them meets the deadline",
    ),
    "none alone": (
        "a single GPU is not tried",
        "where one GPU meets the deadline, your answer is the next number that does; all other answers are right",
        "begin with 1",
    ),
    "halved": (
        "numbers of GPUs are skipped, as if one more GPU were always faster",
        "in all cases your answers are those of a search that halves the range",
        "try every number, starting with 1: with two or more GPUs, each step also waits for the sum",
    ),
    "powers of two": (
        "only powers of two are tried as numbers of GPUs",
        "in all cases your answers are those of such a search, but fewer GPUs would meet the deadline",
        "try every number, starting with 1",
    ),
}
