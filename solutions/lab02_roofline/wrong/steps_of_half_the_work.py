# exercise: network_roofline
# told: a step's multiply-adds were one operation each


def step_s(batch, *, nodes, weights, itemsize, node_flop_per_s, link_byte_per_s, buckets):
    forward_s = weights * batch / nodes / node_flop_per_s
    ring_s = 2 * (nodes - 1) / nodes * itemsize * weights / link_byte_per_s
    shorter_s, longer_s = sorted((2 * forward_s, ring_s))
    return forward_s + longer_s + shorter_s / buckets
