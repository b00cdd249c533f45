# exercise: network_roofline
# told: the backward pass counted as one product


def step_s(batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets):
    forward_s = 2 * weights * batch / nodes / node_flop_per_s
    ring_s = 2 * (nodes - 1) / nodes * itemsize * weights / link_byte_per_s
    return forward_s + max(forward_s, ring_s) + min(forward_s, ring_s) / buckets
