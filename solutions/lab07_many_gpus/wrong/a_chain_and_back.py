# exercise: ring
# told: the buffer goes from rank to rank, one link at a time
def all_reduce(dist, buffer):
    """Up the chain adding, down the chain with the sum."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    if rank > 0:
        theirs = dist.empty(len(buffer), dtype=buffer.dtype)
        dist.recv(theirs, rank - 1)
        dist.add(buffer, theirs)
    if rank < last:
        dist.send(buffer, rank + 1)
        dist.recv(buffer, rank + 1)
    if rank > 0:
        dist.send(buffer, rank - 1)
