# exercise: time_to_quality
# told: the sum over GPUs is left out, or hidden
def step_s(job, machine, batch, gpus):
    """Sums are free."""
    samples = batch / gpus
    computes_s = samples * job["sample_flop"] / machine["flop_per_s"]
    moved = job["weight_bytes"] + samples * job["sample_bytes"]
    sums_s = 0.0
    longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
    return longer_s + machine["overhead_s"] + sums_s
