# %% mistake="always_four_parts"
# told: the result is right and work overlaps, but your schedule is slower than it could be
def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = (
        gpu.host_empty(nbytes, pin_memory=True),
        gpu.host_empty(nbytes, pin_memory=True),
    )
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


# %% mistake="kernel_reads_host_memory"
# told: your code gives host memory to the kernel
def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = (
        gpu.host_empty(nbytes, pin_memory=True),
        gpu.host_empty(nbytes, pin_memory=True),
    )
    load(gpu, source)
    kernel(gpu, result, source)
    gpu.synchronize()
    return result


# %% mistake="last_part_forgotten"
# told: part of the result is wrong
def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = (
        gpu.host_empty(nbytes, pin_memory=True),
        gpu.host_empty(nbytes, pin_memory=True),
    )
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


# %% mistake="no_events"
# told: in your program, a kernel may start before its data have arrived
def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = (
        gpu.host_empty(nbytes, pin_memory=True),
        gpu.host_empty(nbytes, pin_memory=True),
    )
    device, into, work, out = (
        gpu.empty(nbytes),
        gpu.Stream(),
        gpu.Stream(),
        gpu.Stream(),
    )
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


# %% mistake="one_part_at_a_time"
# told: nothing overlaps in your program
def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = (
        gpu.host_empty(nbytes, pin_memory=True),
        gpu.host_empty(nbytes, pin_memory=True),
    )
    device = gpu.empty(nbytes)
    load(gpu, source)
    for start in range(0, nbytes, 1 << 20):
        part = slice(start, min(nbytes, start + (1 << 20)))
        gpu.copy(device[part], source[part], non_blocking=True)
        kernel(gpu, device[part], device[part])
        gpu.copy(result[part], device[part], non_blocking=True)
    gpu.synchronize()
    return result


# %% mistake="pageable_memory"
# told: your copies go through pageable memory
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


# %% mistake="returns_too_early"
# told: your program reads the result before its copy has ended
def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = (
        gpu.host_empty(nbytes, pin_memory=True),
        gpu.host_empty(nbytes, pin_memory=True),
    )
    device, lanes = gpu.empty(nbytes), [gpu.Stream(), gpu.Stream(), gpu.Stream()]
    load(gpu, source)
    size = max(1, nbytes // 16)
    for number, start in enumerate(range(0, nbytes, size)):
        part = slice(start, min(nbytes, start + size))
        with gpu.stream(lanes[number % 3]):
            gpu.copy(device[part], source[part], non_blocking=True)
            kernel(gpu, device[part], device[part])
            gpu.copy(result[part], device[part], non_blocking=True)
    return result
