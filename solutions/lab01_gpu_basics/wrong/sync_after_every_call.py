# exercise: honest_timer
# told: every call was synchronised


def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(200):
        fn()
        gpu.synchronize()
    return (gpu.now_s() - first_s) / 200
