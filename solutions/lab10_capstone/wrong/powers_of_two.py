# exercise: time_to_quality
# told: a number of GPUs need not be a power of two
def fewest_gpus(job, machine, deadline_s):
    """1, 2, 4, 8."""
    gpus = 1
    while gpus <= machine["most_gpus"]:
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
        gpus *= 2
    return None
