# exercise: time_to_quality
# told: fewest steps do not end first
def best_batch(job, machine, gpus):
    """The largest."""
    return gpus * machine["most_samples"]
