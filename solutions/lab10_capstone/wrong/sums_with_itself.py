# exercise: time_to_quality
# told: one GPU has nobody to sum with
def step_s(job, machine, batch, gpus):
    """Always a sum."""
    samples = batch / gpus
    computes_s = samples * job["sample_flop"] / machine["flop_per_s"]
    moved = job["weight_bytes"] + samples * job["sample_bytes"]
    sums_s = machine["sync_s"]
    longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
    return longer_s + machine["overhead_s"] + sums_s
