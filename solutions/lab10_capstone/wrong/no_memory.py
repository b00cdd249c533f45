# exercise: time_to_quality
# told: the batch does not fit
def best_batch(job, machine, gpus):
    """No end."""
    batches = range(gpus, 20 * gpus * machine["most_samples"] + 1, gpus)
    return min(batches, key=lambda batch: quality_s(job, machine, batch, gpus))
