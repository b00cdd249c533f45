# exercise: pick_collective
# told: the fewest rounds are not always the fastest
def pick(job):
    """The least price of an empty message."""
    empty = {**job, "message_bytes": 0}
    return min(ALGORITHMS, key=lambda name: price(name, empty))
