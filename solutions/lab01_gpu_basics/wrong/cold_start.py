# exercise: honest_timer
# told: the first call is in the measurement
# like: long_but_cold.py


def time_device(fn, gpu):
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(100):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - first_s) / 100
