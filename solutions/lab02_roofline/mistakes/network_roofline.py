# %% mistake="always_four_bytes_to_send"
# told: your step sends 4 bytes per weight
# %% replace
ring_s = 2 * (nodes - 1) / nodes * itemsize * weights / link_byte_per_s
# %% by
ring_s = 2 * (nodes - 1) / nodes * 4 * weights / link_byte_per_s


# %% mistake="always_hidden"
# told: your code hides sending behind computing, but with one bucket nothing overlaps
def step_s(batch, *, buckets, rightly=step_s, **job):  # noqa: F821
    return rightly(batch, buckets=10**9, **job)


# %% mistake="behind_is_ignored"
# told: your code ignores `behind`
import math


def network_intensity(batch, *, nodes, itemsize, behind):
    """FLOPs that one node does, per byte that it sends around a ring."""
    products = 2
    if nodes == 1:
        return math.inf
    flop = products * 2 * batch / nodes
    return flop / (2 * (nodes - 1) / nodes * itemsize)


def step_s(
    batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets
):
    """Seconds of a training step: forward, backward
    and the sum of gradients around a ring."""
    forward_s = 2 * weights * batch / nodes / node_flop_per_s
    backward_s = 2 * forward_s
    sent_bytes = 2 * (nodes - 1) / nodes * weights * itemsize
    send_s = sent_bytes / link_byte_per_s
    sent_s = 0.0
    for bucket in range(1, buckets + 1):
        ready_s = forward_s + backward_s * bucket / buckets
        sent_s = max(sent_s, ready_s) + send_s / buckets
    return sent_s


# %% mistake="half_of_the_ring"
# told: your step sends half of the ring's traffic
# %% replace
ring_s = 2 * (nodes - 1) / nodes * itemsize * weights / link_byte_per_s
# %% by
ring_s = (nodes - 1) / nodes * itemsize * weights / link_byte_per_s


# %% mistake="last_bucket_needs_no_link"
# told: your code sends the last bucket before it is finished
def step_s(batch, *, buckets, rightly=step_s, **job):  # noqa: F821
    alone = {**job, "link_byte_per_s": 1e30}
    compute_s, added_s = (
        rightly(batch, buckets=1, **alone),
        rightly(batch, buckets=1, **job),
    )
    forward_s, ring_s = compute_s / 3, added_s - compute_s
    return (
        forward_s + max(2 * forward_s, 2 * forward_s / buckets + ring_s)
        if buckets > 1
        else added_s
    )


# %% mistake="one_bucket_for_ever"
# told: your code adds up the times of computing and sending, but with several buckets they overlap
def step_s(batch, *, buckets, rightly=step_s, **job):  # noqa: F821
    return rightly(batch, buckets=1, **job)


# %% mistake="one_product_backward"
# told: your code leaves out the forward pass, or counts the backward pass as one product
def step_s(
    batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets
):
    forward_s = 2 * weights * batch / nodes / node_flop_per_s
    ring_s = 2 * (nodes - 1) / nodes * itemsize * weights / link_byte_per_s
    return forward_s + max(forward_s, ring_s) + min(forward_s, ring_s) / buckets


# %% mistake="sends_too_early"
# told: your code sends gradients before the backward pass begins
def step_s(batch, *, buckets, rightly=step_s, **job):  # noqa: F821
    alone = {**job, "link_byte_per_s": 1e30}
    compute_s, added_s = (
        rightly(batch, buckets=1, **alone),
        rightly(batch, buckets=1, **job),
    )
    return max(compute_s, added_s - compute_s) if buckets > 1 else added_s


# %% mistake="steps_of_half_the_work"
# told: your step counts a multiply-add as one operation
# %% replace
forward_s = 2 * weights * batch / nodes / node_flop_per_s
# %% by
forward_s = weights * batch / nodes / node_flop_per_s


# %% mistake="to_everybody"
# told: in your count, a node sends to all other nodes
def network_intensity(batch, *, nodes, itemsize, behind):
    return (
        (2 if behind == "weight gradient" else 4)
        * batch
        / nodes
        / ((nodes - 1) * itemsize)
    )


# %% mistake="waits_for_no_bucket"
# told: your code begins to send before the first bucket is finished
def step_s(batch, *, buckets, rightly=step_s, **job):  # noqa: F821
    alone = {**job, "link_byte_per_s": 1e30}
    compute_s, added_s = (
        rightly(batch, buckets=1, **alone),
        rightly(batch, buckets=1, **job),
    )
    forward_s, ring_s = compute_s / 3, added_s - compute_s
    return (
        forward_s + max(2 * forward_s + ring_s / buckets, ring_s)
        if buckets > 1
        else added_s
    )


# %% mistake="whole_batch_everywhere"
# told: your code gives the whole batch to each node
def network_intensity(batch, *, nodes, itemsize, behind, rightly=network_intensity):  # noqa: F821
    return nodes * rightly(batch, nodes=nodes, itemsize=itemsize, behind=behind)
