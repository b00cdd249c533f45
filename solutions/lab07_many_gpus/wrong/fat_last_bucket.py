# exercise: buckets
# told: the last bucket is too large
def plan_buckets(layers, link):
    """The last few layers first, and all others together."""
    order = list(reversed(range(len(layers))))
    return [order[:3], order[3:]]
