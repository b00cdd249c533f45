# exercise: time_to_quality
# told: the fraction of batch and critical batch is upside down
def quality_s(job, machine, batch, gpus):
    """B over B_c."""
    steps = job["steps"] * (1 + batch / job["critical_batch"])
    return steps * step_s(job, machine, batch, gpus)
