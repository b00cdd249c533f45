# exercise: buckets
# told: one bucket is ready when nothing is left to hide behind
def plan_buckets(layers, link):
    """All gradients together."""
    return [list(reversed(range(len(layers))))]
