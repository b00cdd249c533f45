# exercise: overlap_plan
# told: the host waits for the device in every step


def feed(gpu, batches, *, nbytes, slots, load, step):
    host, inside = gpu.host_empty(nbytes, pin_memory=True), gpu.empty(nbytes)
    for batch in range(batches):
        load(host, batch)
        gpu.copy(inside, host, non_blocking=True)
        step(inside, batch)
        gpu.synchronize()
