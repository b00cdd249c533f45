# exercise: cost
# told: activations are shared by all GPUs
def fits(run, chip, gpus):
    """All is shared."""
    return (run["parameters"] * run["state_bytes"] + run["activation_bytes"]) / gpus <= chip["memory_bytes"]
