# exercise: batcher
# told: some requests are never chosen
def next_batch(now_s, queue, service, limit_s):
    """Never a long text."""
    short = [one.number for one in queue if one.prompt_tokens < 512]
    return short[: service.most_sequences]
