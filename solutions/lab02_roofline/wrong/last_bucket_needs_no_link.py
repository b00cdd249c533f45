# exercise: network_roofline
# told: the last bucket was sent before it was finished


def step_s(batch, *, buckets, rightly=step_s, **job):  # noqa: F821
    alone = {**job, "link_byte_per_s": 1e30}
    compute_s, added_s = rightly(batch, buckets=1, **alone), rightly(batch, buckets=1, **job)
    forward_s, ring_s = compute_s / 3, added_s - compute_s
    return forward_s + max(2 * forward_s, 2 * forward_s / buckets + ring_s) if buckets > 1 else added_s
