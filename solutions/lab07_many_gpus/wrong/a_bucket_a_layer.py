# exercise: buckets
# told: every layer pays for its own rounds
def plan_buckets(layers, link):
    """Each layer by itself."""
    return [[number] for number in reversed(range(len(layers)))]
