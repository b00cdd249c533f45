# exercise: transfer_overlap
# told: a kernel may start before its data have arrived


def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
    device, into, work, out = gpu.empty(nbytes), gpu.Stream(), gpu.Stream(), gpu.Stream()
    load(gpu, source)
    size = max(1, nbytes // 16)
    for start in range(0, nbytes, size):
        part = slice(start, min(nbytes, start + size))
        gpu.copy(device[part], source[part], non_blocking=True, stream=into)
        with gpu.stream(work):
            kernel(gpu, device[part], device[part])
        gpu.copy(result[part], device[part], non_blocking=True, stream=out)
    gpu.synchronize()
    return result
