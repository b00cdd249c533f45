# exercise: ring
# told: links stand idle while ranks take turns
def all_reduce(dist, buffer):
    """Even ranks send first, odd ones receive first."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * len(buffer) // count for at in range(count + 1)]

    def chunk(at):
        low, high = bounds[at % count], bounds[at % count + 1]
        return buffer[low:high] if high > low else None

    def exchange(out, into):
        arrived = None
        for sends in (rank % 2 == 0, rank % 2 == 1):
            if sends and chunk(out) is not None:
                dist.send(chunk(out), right)
            if not sends and chunk(into) is not None:
                arrived = dist.empty(len(chunk(into)), dtype=buffer.dtype)
                dist.recv(arrived, left)
        return arrived

    for turn in range(count - 1):
        arrived = exchange(rank - turn, rank - turn - 1)
        if arrived is not None:
            dist.add(chunk(rank - turn - 1), arrived)
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.copy(chunk(rank - turn), arrived)
