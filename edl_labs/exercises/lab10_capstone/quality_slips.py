"""Mistakes about the time to a quality: the sentence of each."""

from __future__ import annotations

STEPS = {
    "your function adds the times for computing and moving": (
        "take the longer of the two times, because computing and moving overlap"
    ),
    "your function takes the shorter of the two times": (
        "take the longer of the two times: a step ends when both have ended"
    ),
    "your function leaves out the overhead of a step": "add machine['overhead_s'] once per step",
    "your function leaves out the wait for the sum over GPUs, or hides it behind computing": (
        "with two or more GPUs, add sync_s after computing and moving"
    ),
    "in your function, a single GPU waits for a sum over GPUs": "add sync_s only for two or more GPUs",
    "your function moves the weights for every sample": "count the weights once per step",
    "in your function, each GPU computes the whole batch": "give each GPU batch / gpus samples",
    "your function divides the weights among the GPUs": "count all weights on each GPU",
    "your function leaves out the bytes of the samples": "add the bytes that each sample moves",
    "your function leaves out the bytes of the weights": "add the weights, which each GPU moves once per step",
}
BATCHES = {
    "throughput": (
        "your function chooses the largest batch, but training can end sooner with a smaller one",
        "in all cases, you take the largest batch that fits: it has the most samples per second and the fewest steps",
        "compare the seconds until the quality is reached, which quality_s() returns",
    ),
    "smallest": (
        "your function chooses the batch with the shortest step, but training can end sooner with a larger one",
        "in all cases your answer is the smallest batch",
        "multiply the time of a step by the number of steps: a small batch needs many more steps",
    ),
    "ridge": (
        "your function chooses the batch at the ridge, but training can end sooner with another batch",
        "in all cases your answer is the batch for which computing takes as long as moving, or the largest that fits",
        "try all batches: an overhead favours a larger batch, and samples with many bytes favour a smaller one",
    ),
    "critical": (
        "your function chooses the critical batch, but training can end sooner with another batch",
        "the critical batch describes how the number of steps depends on the batch, but not how fast the machine is",
        "compare what quality_s() returns for each batch",
    ),
    "no memory": (
        "your batch does not fit",
        "in all cases your answer is the batch that would be best with unlimited memory",
        "allow at most machine['most_samples'] samples on each GPU",
    ),
    "memory of one": (
        "your function limits the batch to the memory of one GPU",
        "in all cases your answer is the best batch that would fit on one GPU",
        "allow batches up to `gpus` times machine['most_samples']",
    ),
    "best of one": (
        "your function uses the best batch of one GPU for several GPUs",
        "in all cases your answer is the best batch for one GPU, or the next one that the GPUs can share equally",
        "search again for each number of GPUs: each GPU has batch / gpus samples, and each step also waits for the sum",
    ),
}
GPUS = {
    "linear": (
        "your function assumes that n GPUs train n times as fast as one GPU",
        "in all cases your answer is the time on one GPU divided by the deadline",
        "for each number of GPUs, call quality_s() with the best batch for that number",
    ),
    "batch of one": (
        "your function uses one GPU's best batch for every number of GPUs",
        "in all cases, your answer would be right if the GPUs shared that batch",
        "call best_batch(job, machine, gpus) for each number",
    ),
    "samples of one": (
        "your function gives every GPU the number of samples that is best on one GPU",
        "in all cases, your answers would be right for that number of samples per GPU",
        "call best_batch(job, machine, gpus) for each number",
    ),
    "shortest": (
        "your function returns the number of GPUs that trains fastest, not the fewest GPUs in time",
        "in all cases your answer is the number of GPUs with which training ends soonest",
        "stop at the first number that meets the deadline",
    ),
    "last left out": (
        "your function does not try machine['most_gpus'] GPUs",
        "in all cases your answers are those of a search that stops one GPU earlier",
        "include this number in the search: range(1, n) ends before n",
    ),
    "strictly in time": (
        "your function rejects a training run that ends exactly at the deadline",
        "your answers are wrong only where a training run ends exactly at the deadline",
        "accept such a run: ending exactly at the deadline is in time",
    ),
    "one too many": (
        "your function uses more than machine['most_gpus'] GPUs",
        "where only machine['most_gpus'] + 1 GPUs would meet the deadline, your answer is that number",
        "try numbers up to machine['most_gpus'], and return None if none of them meets the deadline",
    ),
    "none alone": (
        "your function does not try a single GPU",
        "where one GPU meets the deadline, your answer is the next number that does; all other answers are right",
        "begin with 1",
    ),
    "halved": (
        "your function skips numbers of GPUs, as if one more GPU always made training faster",
        "in all cases, your answers are those of a search that halves its range",
        "try every number, starting with 1: with two or more GPUs, each step also waits for the sum",
    ),
    "powers of two": (
        "your function tries only powers of two as numbers of GPUs",
        "in all cases, your answers are those of such a search, which can miss a smaller number in time",
        "try every number, starting with 1",
    ),
}
