# exercise: batcher
# told: Your function modified its input
def servers_for(demand_per_s, limit_s, runs):
    """It takes the runs out of the list."""
    kept = []
    while runs:
        run = runs.pop()
        latencies = sorted(run["latencies_s"])
        if latencies[-(-99 * len(latencies) // 100) - 1] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))
