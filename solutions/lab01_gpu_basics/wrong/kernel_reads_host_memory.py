# exercise: transfer_overlap
# told: the kernel was given host memory


def run_overlapped(gpu, nbytes, *, load, kernel):
    source, result = gpu.host_empty(nbytes, pin_memory=True), gpu.host_empty(nbytes, pin_memory=True)
    load(gpu, source)
    kernel(gpu, result, source)
    gpu.synchronize()
    return result
