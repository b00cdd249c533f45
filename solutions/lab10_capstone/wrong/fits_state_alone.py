# exercise: cost
# told: activations are left out of the memory
def fits(run, chip, gpus):
    """No activations."""
    return run["parameters"] * run["state_bytes"] / gpus <= chip["memory_bytes"]
