# exercise: time_to_quality
# told: the number of steps does not depend on the batch
def quality_s(job, machine, batch, gpus):
    """S."""
    steps = job["steps"]
    return steps * step_s(job, machine, batch, gpus)
