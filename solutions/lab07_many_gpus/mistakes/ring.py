# %% mistake="a_chain_and_back"
# told: your code passes the buffer from rank to rank, one link at a time
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


# %% mistake="a_collective_does_it"
# told: your program uses a collective that this exercise does not allow
def all_reduce(dist, buffer):
    """The one that is there already."""
    dist.all_reduce(buffer, algorithm="ring")


# %% mistake="adds_all_the_way"
# told: your sum contains some ranks' elements more than once
def all_reduce(dist, buffer):
    """Adds in the second half too."""
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
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.add(chunk(rank - turn), arrived)


# %% mistake="adds_before_it_is_there"
# told: your code uses a chunk before it has arrived
def all_reduce(dist, buffer):
    """Never waits for what it receives."""
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
            dist.irecv(arrived, left)
        if work is not None:
            work.wait()
        return arrived

    for turn in range(count - 1):
        arrived = exchange(rank - turn, rank - turn - 1)
        if arrived is not None:
            dist.add(chunk(rank - turn - 1), arrived)
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.copy(chunk(rank - turn), arrived)


# %% mistake="blocks_in_send"
# told: in your code, every rank waits until its send is received
def all_reduce(dist, buffer):
    """Sends first, then receives."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * len(buffer) // count for at in range(count + 1)]

    def chunk(at):
        low, high = bounds[at % count], bounds[at % count + 1]
        return buffer[low:high] if high > low else None

    def exchange(out, into):
        if chunk(out) is not None:
            dist.send(chunk(out), right)
        arrived = None
        if chunk(into) is not None:
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


# %% mistake="fewer_chunks_than_ranks"
# told: your code fails when the elements are divided among the ranks
def all_reduce(dist, buffer):
    """Cuts as torch.chunk does."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    chunks = buffer.chunk(count)

    def chunk(at):
        return chunks[at % count]

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
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.copy(chunk(rank - turn), arrived)


# %% mistake="in_small_pieces"
# told: your code sends more messages than there are rounds
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


# %% mistake="in_turns"
# told: your code leaves links idle for part of the time
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


# %% mistake="mean_of_all"
# told: your result is the mean, not the sum
def all_reduce(dist, buffer):
    """Divides by P in the end."""
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
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.copy(chunk(rank - turn), arrived)
    dist.scale(buffer, 1 / count)


# %% mistake="never_waits_for_sends"
# told: your code changes a chunk while it is still being sent
def all_reduce(dist, buffer):
    """Lets its sends go."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * len(buffer) // count for at in range(count + 1)]

    def chunk(at):
        low, high = bounds[at % count], bounds[at % count + 1]
        return buffer[low:high] if high > low else None

    def exchange(out, into):
        if chunk(out) is not None:
            dist.isend(chunk(out), right)
        arrived = None
        if chunk(into) is not None:
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


# %% mistake="one_round_short"
# told: in your code, no chunk visits every rank
def all_reduce(dist, buffer):
    """P - 2 rounds instead of P - 1."""
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

    for turn in range(count - 2):
        arrived = exchange(rank - turn, rank - turn - 1)
        if arrived is not None:
            dist.add(chunk(rank - turn - 1), arrived)
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.copy(chunk(rank - turn), arrived)


# %% mistake="only_scatters"
# told: in your code, each rank finishes only a part of the sums
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


# %% mistake="over_one_rank"
# told: in your code, one rank does the work of all ranks
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


# %% mistake="rest_is_left_out"
# told: your code leaves out elements at the end of the buffer
def all_reduce(dist, buffer):
    """Chunks of n // P."""
    rank, count = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % count, (rank - 1) % count
    bounds = [at * (len(buffer) // count) for at in range(count + 1)]

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
    for turn in range(count - 1):
        arrived = exchange(rank + 1 - turn, rank - turn)
        if arrived is not None:
            dist.copy(chunk(rank - turn), arrived)


# %% mistake="sends_left_open"
# told: in your code, a send is still unfinished when all_reduce() returns
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


# %% mistake="whole_buffers_go_round"
# told: your code sends more than one chunk in a round
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
