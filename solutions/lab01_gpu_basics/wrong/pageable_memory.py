# exercise: transfer_overlap
# told: the copies go through pageable memory


def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = gpu.host_empty(nbytes), gpu.host_empty(nbytes)
    device, lanes = gpu.empty(nbytes), [gpu.Stream(), gpu.Stream(), gpu.Stream()]
    load(gpu, source)
    size = max(1, nbytes // 16)
    for number, start in enumerate(range(0, nbytes, size)):
        part = slice(start, min(nbytes, start + size))
        with gpu.stream(lanes[number % 3]):
            gpu.copy(device[part], source[part], non_blocking=True)
            kernel(gpu, device[part], device[part])
            gpu.copy(result[part], device[part], non_blocking=True)
    gpu.synchronize()
    return result
