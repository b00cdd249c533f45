# exercise: overlap_plan
# told: right, but slower than it could be


def feed(gpu, batches, *, nbytes, slots, load, step):
    hosts = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
    inside = [gpu.empty(nbytes) for _ in range(slots)]
    copied, done = ([gpu.Event() for _ in range(slots)] for _ in range(2))
    copies, steps = gpu.Stream(), gpu.Stream()
    for batch in range(batches):
        slot = batch % slots
        if batch >= slots:
            done[slot].synchronize()
        load(hosts[slot], batch)
        with gpu.stream(copies):
            gpu.copy(inside[slot], hosts[slot], non_blocking=True)
            copied[slot].record()
        steps.wait_event(copied[slot])
        with gpu.stream(steps):
            step(inside[slot], batch)
            done[slot].record()
    gpu.synchronize()
