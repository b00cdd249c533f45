# exercise: network_roofline
# told: a step sent half of the ring's traffic


def step_s(batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets):
    forward_s = 2 * weights * batch / nodes / node_flop_per_s
    ring_s = (nodes - 1) / nodes * itemsize * weights / link_byte_per_s
    shorter_s, longer_s = sorted((2 * forward_s, ring_s))
    return forward_s + longer_s + shorter_s / buckets
