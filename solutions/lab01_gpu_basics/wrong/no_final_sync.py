# exercise: honest_timer
# told: the last reading was taken before the device was done


def time_device(fn, gpu):
    for _ in range(3):
        fn()
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(1000):
        fn()
    return (gpu.now_s() - first_s) / 1000
