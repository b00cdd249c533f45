# exercise: time_to_quality
# told: no number of GPUs is in time
def fewest_gpus(job, machine, deadline_s):
    """Always a number."""
    for gpus in range(1, machine["most_gpus"] + 1):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            break
    return gpus
