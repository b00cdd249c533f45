# exercise: network_roofline
# told: a step sent 4 bytes a weight


def step_s(batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets):
    forward_s = 2 * weights * batch / nodes / node_flop_per_s
    ring_s = 2 * (nodes - 1) / nodes * 4 * weights / link_byte_per_s
    shorter_s, longer_s = sorted((2 * forward_s, ring_s))
    return forward_s + longer_s + shorter_s / buckets
