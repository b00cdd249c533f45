# exercise: time_to_quality
# told: machine['most_gpus'] GPUs may be used, too
def fewest_gpus(job, machine, deadline_s):
    """Ends before the last."""
    for gpus in range(1, machine["most_gpus"]):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None
