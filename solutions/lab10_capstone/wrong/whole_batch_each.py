# exercise: time_to_quality
# told: each GPU takes the whole batch
def step_s(job, machine, batch, gpus):
    """All on each."""
    samples = batch
    computes_s = samples * job["sample_flop"] / machine["flop_per_s"]
    moved = job["weight_bytes"] + samples * job["sample_bytes"]
    sums_s = machine["sync_s"] if gpus > 1 else 0.0
    longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
    return longer_s + machine["overhead_s"] + sums_s
