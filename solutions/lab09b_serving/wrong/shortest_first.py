# exercise: batcher
# told: the mean is short because long prompts are left waiting
def next_batch(now_s, queue, service, limit_s):
    """Short ones first."""
    ordered = sorted(queue, key=lambda one: one.prompt_tokens)
    return [one.number for one in ordered[: service.most_sequences]]
