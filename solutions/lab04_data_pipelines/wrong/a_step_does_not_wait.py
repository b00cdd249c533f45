# exercise: overlap_plan
# told: a step and a copy use one device buffer in no order


def feed(gpu, batches, *, nbytes, slots, load, step):
    hosts = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
    inside = [gpu.empty(nbytes) for _ in range(slots)]
    copied, copies, steps = [gpu.Event() for _ in range(slots)], gpu.Stream(), gpu.Stream()
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
