# exercise: continuous
# told: all that run wait for blocks of one another
def schedule(server):
    """Nobody leaves."""
    for one in server.finished:
        server.free(one)
    for one in server.running:
        if 0 < one.needs <= server.free_blocks:
            server.allocate(one, one.needs)
    for one in server.waiting:
        is_full = len(server.running) == server.machine.most_sequences
        if is_full or one.needs > server.free_blocks:
            break
        server.allocate(one, one.needs)
        server.admit(one)
