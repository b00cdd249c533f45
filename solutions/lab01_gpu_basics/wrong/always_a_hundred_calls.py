# exercise: honest_timer
# told: too few calls for this clock


def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(100):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - first_s) / 100
