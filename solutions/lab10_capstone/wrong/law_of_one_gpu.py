# exercise: time_to_quality
# told: the law is asked for one GPU's samples
def quality_s(job, machine, batch, gpus):
    """Samples of one GPU."""
    steps = job["steps"] * (1 + job["critical_batch"] * gpus / batch)
    return steps * step_s(job, machine, batch, gpus)
