# exercise: network_roofline
# told: every node sent to every other one


def network_intensity(batch, *, nodes, itemsize, behind):
    return (2 if behind == "weight gradient" else 4) * batch / nodes / ((nodes - 1) * itemsize)
