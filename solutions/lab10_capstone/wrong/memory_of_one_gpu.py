# exercise: time_to_quality
# told: each GPU has memory of its own
def best_batch(job, machine, gpus):
    """One memory."""
    batches = range(gpus, max(gpus, machine["most_samples"]) + 1, gpus)
    return min(batches, key=lambda batch: quality_s(job, machine, batch, gpus))
