# exercise: ring
# told: a collective does the work
def all_reduce(dist, buffer):
    """The one that is there already."""
    dist.all_reduce(buffer, algorithm="ring")
