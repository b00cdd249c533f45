# exercise: batcher
# told: the mean is held against the limit
def servers_for(demand_per_s, limit_s, runs):
    """The mean."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if sum(latencies) / len(latencies) <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))
