# exercise: time_to_quality
# told: the least number of steps is left out
def quality_s(job, machine, batch, gpus):
    """No 1."""
    steps = job["steps"] * job["critical_batch"] / batch
    return steps * step_s(job, machine, batch, gpus)
