# exercise: time_to_quality
# told: a single GPU is not tried
def fewest_gpus(job, machine, deadline_s):
    """Begins with two."""
    for gpus in range(2, machine["most_gpus"] + 1):
        if quality_s(job, machine, best_batch(job, machine, gpus), gpus) <= deadline_s:
            return gpus
    return None
