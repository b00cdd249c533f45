# exercise: fit_a_link
# told: that is the rate of the algorithm, not of the bus
def bus_rate(ranks, size, took_s):
    """Bytes over seconds."""
    return size / took_s
