# exercise: ring
# told: one rank does the work of all
def all_reduce(dist, buffer):
    """Everything goes to rank 0, and the sum comes back."""
    others = range(1, dist.get_world_size())
    if dist.get_rank() == 0:
        for other in others:
            theirs = dist.empty(len(buffer), dtype=buffer.dtype)
            dist.recv(theirs, other)
            dist.add(buffer, theirs)
        for other in others:
            dist.send(buffer, other)
    else:
        dist.send(buffer, 0)
        dist.recv(buffer, 0)
