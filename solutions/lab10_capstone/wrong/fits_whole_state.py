# exercise: cost
# told: each GPU is made to hold the whole state
def fits(run, chip, gpus):
    """Nothing is sharded."""
    return run["parameters"] * run["state_bytes"] + run["activation_bytes"] <= chip["memory_bytes"]
