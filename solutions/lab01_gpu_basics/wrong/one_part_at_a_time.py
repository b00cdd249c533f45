# exercise: transfer_overlap
# told: nothing overlaps


def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
    device = gpu.empty(nbytes)
    load(gpu, source)
    for start in range(0, nbytes, 1 << 20):
        part = slice(start, min(nbytes, start + (1 << 20)))
        gpu.copy(device[part], source[part], non_blocking=True)
        kernel(gpu, device[part], device[part])
        gpu.copy(result[part], device[part], non_blocking=True)
    gpu.synchronize()
    return result
