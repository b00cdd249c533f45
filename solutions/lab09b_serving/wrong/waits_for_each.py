# exercise: streams
# told: the host waits before all is launched
def serve(gpu, requests):
    """One, and then the next."""
    stream = gpu.Stream()
    for number, one in enumerate(requests):
        if one["fusible"]:
            whole_loop(gpu, number, one, stream)
        else:
            for at in range(one["steps"]):
                one_step(gpu, number, one, at, stream)
        gpu.synchronize()
