# exercise: network_roofline
# told: `behind` was not read

import math


def network_intensity(batch, *, nodes, itemsize, behind):
    """FLOPs that one node does, per byte that it sends around a ring."""
    products = 2
    if nodes == 1:
        return math.inf
    flop = products * 2 * batch / nodes
    return flop / (2 * (nodes - 1) / nodes * itemsize)


def step_s(batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets):
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
