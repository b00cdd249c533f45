# exercise: overlap_plan
# told: a host buffer is filled again while it is still being copied


def feed(gpu, batches, *, nbytes, slots, load, step):
    hosts = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
    inside = [gpu.empty(nbytes) for _ in range(slots)]
    for batch in range(batches):
        load(hosts[batch % slots], batch)
        gpu.copy(inside[batch % slots], hosts[batch % slots], non_blocking=True)
        step(inside[batch % slots], batch)
    gpu.synchronize()
