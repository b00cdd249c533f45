# exercise: time_to_quality
# told: the critical batch is not the one that ends first
def best_batch(job, machine, gpus):
    """The critical one."""
    critical = -(-job["critical_batch"] // gpus) * gpus
    return min(gpus * machine["most_samples"], critical)
