# exercise: continuous
# told: more is thrown away than blocks are missing
def schedule(server):
    """All out, all in."""
    for one in server.finished:
        server.free(one)
    if sum(one.needs for one in server.running) > server.free_blocks:
        for one in server.running:
            server.preempt(one)
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    for one in server.waiting:
        is_full = len(server.running) == server.machine.most_sequences
        if is_full or one.needs > server.free_blocks:
            break
        server.allocate(one, one.needs)
        server.admit(one)
