# exercise: ring
# told: a send is still open when all_reduce ends
def all_reduce(dist, buffer):
    """Waits for its sends in the first half alone."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * len(buffer) // count for at in range(count + 1)]

    def chunk(at):
        low, high = bounds[at % count], bounds[at % count + 1]
        return buffer[low:high] if high > low else None

    for turn in range(count - 1):
        out, into = chunk(rank - turn), chunk(rank - turn - 1)
        work = dist.isend(out, right) if out is not None else None
        if into is not None:
            arrived = dist.empty(len(into), dtype=buffer.dtype)
            dist.recv(arrived, left)
            dist.add(into, arrived)
        if work:
            work.wait()
    for turn in range(count - 1):
        out, into = chunk(rank + 1 - turn), chunk(rank - turn)
        if out is not None:
            dist.isend(out, right)
        if into is not None:
            dist.recv(into, left)
