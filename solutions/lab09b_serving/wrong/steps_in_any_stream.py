# exercise: streams
# told: the steps of a request may overtake one another
def serve(gpu, requests):
    """Whatever stream is next."""
    streams = [gpu.Stream() for _ in range(4)]
    for number, one in enumerate(requests):
        if one["fusible"]:
            whole_loop(gpu, number, one, streams[number % 4])
        else:
            for at in range(one["steps"]):
                one_step(gpu, number, one, at, streams[at % 4])
    gpu.synchronize()
