# exercise: batcher
# told: the median is held against the limit
def servers_for(demand_per_s, limit_s, runs):
    """Half of them."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if (latencies[len(latencies) // 2 - 1] + latencies[len(latencies) // 2]) / 2 <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))
