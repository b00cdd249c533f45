# exercise: time_to_quality
# told: neither most samples a second nor fewest steps end first
def best_batch(job, machine, gpus):
    """Throughput."""
    batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
    return max(batches, key=lambda batch: batch / step_s(job, machine, batch, gpus))
