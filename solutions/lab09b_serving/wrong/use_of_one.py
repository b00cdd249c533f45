# exercise: batcher
# told: servers are planned for the most that they can do
def servers_for(demand_per_s, limit_s, runs):
    """As busy as can be."""
    return -int(-demand_per_s // max(run["per_s"] for run in runs))
