# exercise: time_to_quality
# told: computing and moving are added
def step_s(job, machine, batch, gpus):
    """One after the other."""
    samples = batch / gpus
    computes_s = samples * job["sample_flop"] / machine["flop_per_s"]
    moved = job["weight_bytes"] + samples * job["sample_bytes"]
    sums_s = machine["sync_s"] if gpus > 1 else 0.0
    longer_s = computes_s + moved / machine["memory_byte_per_s"]
    return longer_s + machine["overhead_s"] + sums_s
