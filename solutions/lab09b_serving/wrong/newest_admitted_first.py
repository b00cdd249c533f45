# exercise: continuous
# told: who came last is admitted first
def schedule(server):
    """The newest."""
    for one in server.finished:
        server.free(one)
    while sum(one.needs for one in server.running) > server.free_blocks:
        server.preempt(server.running[-1])
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    for one in reversed(server.waiting):
        is_full = len(server.running) == server.machine.most_sequences
        if is_full or one.needs > server.free_blocks:
            break
        server.allocate(one, one.needs)
        server.admit(one)
