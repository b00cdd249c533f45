# exercise: time_to_quality
# told: one sample a GPU is not tried
def best_batch(job, machine, gpus):
    """Begins with two samples on each GPU."""
    batches = range(2 * gpus, gpus * machine["most_samples"] + 1, gpus)
    return min(batches, key=lambda batch: quality_s(job, machine, batch, gpus))
