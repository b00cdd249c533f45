# %% mistake="a_buffer_for_every_batch"
# told: batches of pinned memory
def feed(gpu, batches, *, nbytes, slots, load, step):
    for batch in range(batches):
        host, inside = gpu.host_empty(nbytes, pin_memory=True), gpu.empty(nbytes)
        load(host, batch)
        gpu.copy(inside, host, non_blocking=True)
        step(inside, batch)
    gpu.synchronize()


# %% mistake="a_step_does_not_wait"
# told: in your program, a step and a copy use the same device buffer in no fixed order
def feed(gpu, batches, *, nbytes, slots, load, step):
    hosts = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
    inside = [gpu.empty(nbytes) for _ in range(slots)]
    copied, copies, steps = (
        [gpu.Event() for _ in range(slots)],
        gpu.Stream(),
        gpu.Stream(),
    )
    for batch in range(batches):
        slot = batch % slots
        if batch >= slots:
            copied[slot].synchronize()
        load(hosts[slot], batch)
        with gpu.stream(copies):
            gpu.copy(inside[slot], hosts[slot], non_blocking=True)
            copied[slot].record()
        with gpu.stream(steps):
            step(inside[slot], batch)
    gpu.synchronize()


# %% mistake="a_sync_every_step"
# told: in your program, the host waits for the device in every step
def feed(gpu, batches, *, nbytes, slots, load, step):
    host, inside = gpu.host_empty(nbytes, pin_memory=True), gpu.empty(nbytes)
    for batch in range(batches):
        load(host, batch)
        gpu.copy(inside, host, non_blocking=True)
        step(inside, batch)
        gpu.synchronize()


# %% mistake="buffers_filled_too_early"
# told: your program fills a host buffer again while it is still being copied
def feed(gpu, batches, *, nbytes, slots, load, step):
    hosts = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
    inside = [gpu.empty(nbytes) for _ in range(slots)]
    for batch in range(batches):
        load(hosts[batch % slots], batch)
        gpu.copy(inside[batch % slots], hosts[batch % slots], non_blocking=True)
        step(inside[batch % slots], batch)
    gpu.synchronize()


# %% mistake="pageable_batches"
# told: your code loads the batches into pageable memory
def feed(gpu, batches, *, nbytes, slots, load, step):
    one_after_another(gpu, batches, nbytes=nbytes, slots=slots, load=load, step=step)


# %% mistake="the_host_waits_for_the_step"
# told: the result is right, but the program is slower than it could be
# %% replace
pinned = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
# %% by
hosts = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
# %% replace
copied[slot].synchronize()
copies.wait_event(done[slot])
# %% by
done[slot].synchronize()
# %% replace
load(pinned[slot], batch)
# %% by
load(hosts[slot], batch)
# %% replace
gpu.copy(inside[slot], pinned[slot], non_blocking=True)
# %% by
gpu.copy(inside[slot], hosts[slot], non_blocking=True)
