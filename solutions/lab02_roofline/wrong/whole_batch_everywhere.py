# exercise: network_roofline
# told: the whole batch was given to each node


def network_intensity(batch, *, nodes, itemsize, behind, rightly=network_intensity):  # noqa: F821
    return nodes * rightly(batch, nodes=nodes, itemsize=itemsize, behind=behind)
