# exercise: cost
# told: what fits exactly is said not to fit
def fits(run, chip, gpus):
    """Less than the memory."""
    shard = run["parameters"] * run["state_bytes"] / gpus
    return shard + run["activation_bytes"] < chip["memory_bytes"]
