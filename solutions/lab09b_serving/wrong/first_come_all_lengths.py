# exercise: batcher
# told: long prompts hold up the short ones in their batch
def next_batch(now_s, queue, service, limit_s):
    """As many as there are."""
    return [one.number for one in queue[: service.most_sequences]]
