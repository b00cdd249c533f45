# exercise: batcher
# told: requests wait for ever
def next_batch(now_s, queue, service, limit_s):
    """A full batch or none."""
    most = service.most_sequences
    return [one.number for one in queue[:most]] if len(queue) >= most else []
