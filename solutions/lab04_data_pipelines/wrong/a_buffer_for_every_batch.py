# exercise: overlap_plan
# told: batches of pinned memory


def feed(gpu, batches, *, nbytes, slots, load, step):
    for batch in range(batches):
        host, inside = gpu.host_empty(nbytes, pin_memory=True), gpu.empty(nbytes)
        load(host, batch)
        gpu.copy(inside, host, non_blocking=True)
        step(inside, batch)
    gpu.synchronize()
