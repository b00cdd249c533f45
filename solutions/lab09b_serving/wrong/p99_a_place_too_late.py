# exercise: batcher
# told: p99 is taken one place too late
def servers_for(demand_per_s, limit_s, runs):
    """The one at 0.99 of their number."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if latencies[int(0.99 * len(latencies))] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))
