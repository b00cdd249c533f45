# exercise: continuous
# told: blocks are reserved for tokens that may never come
def schedule(server):
    """Blocks for the longest answer."""
    for one in server.finished:
        server.free(one)
    for one in server.waiting:
        most = one.prompt_tokens + server.machine.most_output_tokens
        blocks = server.machine.blocks_for(most)
        is_full = len(server.running) == server.machine.most_sequences
        if is_full or blocks > server.free_blocks:
            break
        server.allocate(one, blocks)
        server.admit(one)
