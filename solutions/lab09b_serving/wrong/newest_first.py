# exercise: batcher
# told: those who wait longest are passed by those who came last
def next_batch(now_s, queue, service, limit_s):
    """Whoever has just come."""
    return [one.number for one in queue[::-1][: service.most_sequences]]
