# exercise: time_to_quality
# told: what ends exactly at the deadline is in time
def fewest_gpus(job, machine, deadline_s):
    """Before the deadline."""
    for gpus in range(1, machine["most_gpus"] + 1):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) < deadline_s:
            return gpus
    return None
