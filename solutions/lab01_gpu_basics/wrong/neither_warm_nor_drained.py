# exercise: honest_timer
# told: the first call is in the measurement
# like: cold_start.py


def time_device(fn, gpu):
    began_s = gpu.now_s()
    for _ in range(1000):
        fn()
    gpu.synchronize()
    return (gpu.now_s() - began_s) / 1000
