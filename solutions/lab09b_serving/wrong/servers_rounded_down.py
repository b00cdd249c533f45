# exercise: batcher
# told: one server is missing
def servers_for(demand_per_s, limit_s, runs):
    """Whole ones."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if latencies[-(-99 * len(latencies) // 100) - 1] <= limit_s:
            kept.append(run["per_s"])
    return int(demand_per_s // max(kept))
