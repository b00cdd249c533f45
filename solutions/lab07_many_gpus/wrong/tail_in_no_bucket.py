# exercise: buckets
# told: not every layer is in one group
def plan_buckets(layers, link):
    """Neighbours in pairs; a layer that is left over stays behind."""
    order = list(reversed(range(len(layers))))
    return [order[at : at + 2] for at in range(0, len(order) - 2, 2)]
