# exercise: time_to_quality
# told: the weights' bytes are left out
def step_s(job, machine, batch, gpus):
    """Moves samples alone."""
    samples = batch / gpus
    computes_s = samples * job["sample_flop"] / machine["flop_per_s"]
    sums_s = machine["sync_s"] if gpus > 1 else 0.0
    longer_s = max(computes_s, samples * job["sample_bytes"] / machine["memory_byte_per_s"])
    return longer_s + machine["overhead_s"] + sums_s
