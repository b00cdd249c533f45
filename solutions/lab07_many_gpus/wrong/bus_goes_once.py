# exercise: fit_a_link
# told: an all-reduce goes round twice
def bus_rate(ranks, size, took_s):
    """As for an all_gather."""
    return (ranks - 1) / ranks * size / took_s
