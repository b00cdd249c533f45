# exercise: time_to_quality
# told: the shortest step does not end first
def best_batch(job, machine, gpus):
    """The smallest."""
    return gpus
