# exercise: batcher
# told: the latest of all is held against the limit
def servers_for(demand_per_s, limit_s, runs):
    """All of them."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if latencies[-1] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))
