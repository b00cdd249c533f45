# exercise: continuous
# told: one request runs at a time
def schedule(server):
    """One."""
    for one in server.finished:
        server.free(one)
    while sum(one.needs for one in server.running) > server.free_blocks:
        server.preempt(server.running[-1])
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    for one in server.waiting:
        is_full = len(server.running) == server.machine.most_sequences
        if server.running or is_full:
            break
        server.allocate(one, one.needs)
        server.admit(one)
