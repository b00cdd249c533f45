# exercise: time_to_quality
# told: weights are moved for each sample
def step_s(job, machine, batch, gpus):
    """Weights again and again."""
    samples = batch / gpus
    computes_s = samples * job["sample_flop"] / machine["flop_per_s"]
    moved = samples * (job["weight_bytes"] + job["sample_bytes"])
    sums_s = machine["sync_s"] if gpus > 1 else 0.0
    longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
    return longer_s + machine["overhead_s"] + sums_s
