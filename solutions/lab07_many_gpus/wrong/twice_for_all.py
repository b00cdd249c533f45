# exercise: fit_a_link
# told: the bus carries another number of bytes
def bus_rate(ranks, size, took_s):
    """Twice the buffer, however many ranks."""
    return 2 * size / took_s
