# exercise: transfer_overlap
# told: part of the result is wrong


def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
    device, lanes = gpu.empty(nbytes), [gpu.Stream(), gpu.Stream(), gpu.Stream()]
    load(gpu, source)
    size = nbytes // 13
    for number in range(12):
        part = slice(number * size, (number + 1) * size)
        with gpu.stream(lanes[number % 3]):
            gpu.copy(device[part], source[part], non_blocking=True)
            kernel(gpu, device[part], device[part])
            gpu.copy(result[part], device[part], non_blocking=True)
    gpu.synchronize()
    return result
