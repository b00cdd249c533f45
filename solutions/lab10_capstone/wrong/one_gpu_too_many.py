# exercise: time_to_quality
# told: there are no more than machine['most_gpus'] GPUs
def fewest_gpus(job, machine, deadline_s):
    """One behind the last."""
    for gpus in range(1, machine["most_gpus"] + 2):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None
