# exercise: batcher
# told: the device idles while requests wait
def next_batch(now_s, queue, service, limit_s):
    """A full batch, or when the first is due."""
    most, due_s = service.most_sequences, queue[0].arrival_s + limit_s
    if len(queue) < most and now_s < due_s:
        return due_s
    size = queue[0].prompt_tokens.bit_length()
    return [one.number for one in queue if one.prompt_tokens.bit_length() == size][:most]
