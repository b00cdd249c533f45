# %% mistake="batch_to_its_end"
# told: in your schedule, the next batch waits for the longest answer of the current batch
# %% replace
for one in server.running:
    if one.needs:
        server.allocate(one, one.needs)
# %% by
for one in server.running:
    if one.needs:
        server.allocate(one, one.needs)
if server.running:
    return


# %% mistake="half_the_pool"
# told: your schedule keeps blocks free while requests wait
# %% replace
if is_full or one.needs > server.free_blocks:
    break
# %% by
if is_full or one.needs > server.free_blocks - server.machine.blocks // 3:
    break


# %% mistake="knows_the_lengths"
# told: one of your decisions depends on something that the server cannot know
def schedule(server):
    """Short answers first."""
    for one in server.finished:
        server.free(one)
    while sum(one.needs for one in server.running) > server.free_blocks:
        server.preempt(server.running[-1])
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    for one in sorted(
        server.waiting, key=lambda one: server.load[one.number].output_tokens
    ):
        is_full = len(server.running) == server.machine.most_sequences
        if is_full or one.needs > server.free_blocks:
            break
        server.allocate(one, one.needs)
        server.admit(one)


# %% mistake="never_frees"
# told: your schedule does not free the blocks of finished requests
# %% replace
for one in server.finished:
    server.free(one)
# %% by


# %% mistake="never_preempts"
# told: all running requests wait for each other's blocks
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


# %% mistake="newest_admitted_first"
# told: your schedule admits later requests before earlier ones
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


# %% mistake="one_at_a_time"
# told: your schedule runs only one request at a time
# %% replace
if is_full or one.needs > server.free_blocks:
    break
# %% by
if server.running or is_full:
    break


# %% mistake="preempts_all"
# told: your schedule preempts more requests than the missing blocks require
# %% replace
while sum(one.needs for one in server.running) > server.free_blocks:
    server.preempt(server.running[-1])
# %% by
if sum(one.needs for one in server.running) > server.free_blocks:
    for one in server.running:
        server.preempt(one)


# %% mistake="reserves_the_longest"
# told: your schedule reserves blocks for tokens that may never be generated
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


# %% mistake="short_prompts_first"
# told: shorter prompts overtake longer ones
def schedule(server):
    """Short ones first."""
    for one in server.finished:
        server.free(one)
    while sum(one.needs for one in server.running) > server.free_blocks:
        server.preempt(server.running[-1])
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    for one in sorted(server.waiting, key=lambda one: one.prompt_tokens):
        is_full = len(server.running) == server.machine.most_sequences
        if is_full or one.needs > server.free_blocks:
            break
        server.allocate(one, one.needs)
        server.admit(one)
