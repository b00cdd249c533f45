# exercise: batcher
# told: requests are served one by one
def next_batch(now_s, queue, service, limit_s):
    """The first."""
    return [queue[0].number]
