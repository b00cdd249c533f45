# exercise: transfer_overlap
# told: right and overlapped, but slower than it could be


def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
    device, lanes = gpu.empty(nbytes), [gpu.Stream(), gpu.Stream()]
    load(gpu, source)
    size = -(-nbytes // 4)
    for number, start in enumerate(range(0, nbytes, size)):
        part = slice(start, min(nbytes, start + size))
        with gpu.stream(lanes[number % 2]):
            gpu.copy(device[part], source[part], non_blocking=True)
            kernel(gpu, device[part], device[part])
            gpu.copy(result[part], device[part], non_blocking=True)
    gpu.synchronize()
    return result
