# exercise: network_roofline
# told: gradients were sent before the backward pass began


def step_s(batch, *, buckets, rightly=step_s, **job):  # noqa: F821
    alone = {**job, "link_byte_per_s": 1e30}
    compute_s, added_s = rightly(batch, buckets=1, **alone), rightly(batch, buckets=1, **job)
    return max(compute_s, added_s - compute_s) if buckets > 1 else added_s
