# exercise: streams
# told: all requests take turns, and all end late
def serve(gpu, requests):
    """Launches the first step of every request, then the second of every one."""
    width = max(1, gpu.machine.sm_count // requests[0]["blocks"])
    lanes = [gpu.Stream() for _ in range(width)]
    for at in range(requests[0]["steps"]):
        for number, one in enumerate(requests):
            if not one["fusible"]:
                one_step(gpu, number, one, at, lanes[number % width])
            elif at == 0:
                whole_loop(gpu, number, one, lanes[number % width])
    gpu.synchronize()
