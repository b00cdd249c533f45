# exercise: streams
# told: the host feeds one stream at a time
def serve(gpu, requests):
    """Launches a whole request before the next one's first step."""
    width = max(1, gpu.machine.sm_count // requests[0]["blocks"])
    lanes = [gpu.Stream() for _ in range(width)]
    for number, one in enumerate(requests):
        lane = lanes[number % width]
        if one["fusible"]:
            whole_loop(gpu, number, one, lane)
            continue
        for at in range(one["steps"]):
            one_step(gpu, number, one, at, lane)
    gpu.synchronize()
