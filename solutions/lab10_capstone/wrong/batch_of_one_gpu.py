# exercise: time_to_quality
# told: each number of GPUs has a best batch of its own
def fewest_gpus(job, machine, deadline_s):
    """One batch for all."""
    one = best_batch(job, machine, 1)
    for gpus in range(1, machine["most_gpus"] + 1):
        if quality_s(job, machine, -(-one // gpus) * gpus, gpus) <= deadline_s:
            return gpus
    return None
