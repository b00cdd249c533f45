# exercise: ring
# told: each rank has finished sums of a part alone
def all_reduce(dist, buffer):
    """Stops after the first half."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * len(buffer) // count for at in range(count + 1)]

    def chunk(at):
        low, high = bounds[at % count], bounds[at % count + 1]
        return buffer[low:high] if high > low else None

    def exchange(out, into):
        work = dist.isend(chunk(out), right) if chunk(out) is not None else None
        arrived = None
        if chunk(into) is not None:
            arrived = dist.empty(len(chunk(into)), dtype=buffer.dtype)
            dist.recv(arrived, left)
        if work is not None:
            work.wait()
        return arrived

    for turn in range(count - 1):
        arrived = exchange(rank - turn, rank - turn - 1)
        if arrived is not None:
            dist.add(chunk(rank - turn - 1), arrived)
