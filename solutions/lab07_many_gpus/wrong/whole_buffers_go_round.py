# exercise: ring
# told: more than a chunk is sent in a round
def all_reduce(dist, buffer):
    """Each rank's whole buffer goes round, and everybody adds it."""
    rank, count = dist.get_rank(), dist.get_world_size()
    travelling = dist.empty(len(buffer), dtype=buffer.dtype)
    dist.copy(travelling, buffer)
    for _ in range(count - 1):
        arriving = dist.empty(len(buffer), dtype=buffer.dtype)
        work = dist.isend(travelling, (rank + 1) % count)
        dist.recv(arriving, (rank - 1) % count)
        work.wait()
        dist.add(buffer, arriving)
        travelling = arriving
