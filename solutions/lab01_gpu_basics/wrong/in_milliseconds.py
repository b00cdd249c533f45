# exercise: honest_timer
# told: the number is in milliseconds


def time_device(fn, gpu):
    fn()
    gpu.synchronize()
    calls = 10
    while True:
        began_s = gpu.now_s()
        for _ in range(calls):
            fn()
        gpu.synchronize()
        elapsed_s = gpu.now_s() - began_s
        if elapsed_s > 1e-2:
            return 1e3 * elapsed_s / calls
        calls *= 4
