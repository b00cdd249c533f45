# exercise: batcher
# told: what your function was given has been changed
def servers_for(demand_per_s, limit_s, runs):
    """Sorted in place."""
    kept = []
    for run in runs:
        run["latencies_s"].sort()
        latencies = run["latencies_s"]
        if latencies[-(-99 * len(latencies) // 100) - 1] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))
