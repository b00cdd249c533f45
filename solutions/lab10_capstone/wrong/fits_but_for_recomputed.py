# exercise: cost
# told: activations are left out where they are recomputed
def fits(run, chip, gpus):
    """Recomputed, so they are gone."""
    held = run["parameters"] * run["state_bytes"] / gpus
    if not run["recompute"]:
        held += run["activation_bytes"]
    return held <= chip["memory_bytes"]
