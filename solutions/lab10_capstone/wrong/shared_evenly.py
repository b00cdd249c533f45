# exercise: time_to_quality
# told: GPUs do not share a training evenly
def fewest_gpus(job, machine, deadline_s):
    """Linear."""
    batch = best_batch(job, machine, 1)
    gpus = -int(-quality_s(job, machine, batch, 1) // deadline_s)
    return gpus if gpus <= machine["most_gpus"] else None
