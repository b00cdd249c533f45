# exercise: ring
# told: there are more messages than rounds
def all_reduce(dist, buffer):
    """Sends each chunk in four pieces."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * len(buffer) // count for at in range(count + 1)]

    def chunk(at):
        low, high = bounds[at % count], bounds[at % count + 1]
        return buffer[low:high] if high > low else None

    def exchange(out, into):
        works = [dist.isend(piece, right) for piece in pieces(chunk(out))]
        arrived = None
        if chunk(into) is not None:
            arrived = dist.empty(len(chunk(into)), dtype=buffer.dtype)
            for piece in pieces(arrived):
                dist.recv(piece, left)
        for work in works:
            work.wait()
        return arrived

    def pieces(part):
        return [] if part is None else part.chunk(4)

    for turn in range(count - 1):
        arrived = exchange(rank - turn, rank - turn - 1)
        if arrived is not None:
            dist.add(chunk(rank - turn - 1), arrived)
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.copy(chunk(rank - turn), arrived)
