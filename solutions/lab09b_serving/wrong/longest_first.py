# exercise: batcher
# told: short prompts are left waiting behind long ones
def next_batch(now_s, queue, service, limit_s):
    """The longest of the queue."""
    longest = sorted(queue, key=lambda one: -one.prompt_tokens)
    return [one.number for one in longest[: service.most_sequences]]
