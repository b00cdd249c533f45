# exercise: honest_timer
# told: far more calls than this clock asks for


def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(1000):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - first_s) / 1000
