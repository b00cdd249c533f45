# exercise: streams
# told: requests in more streams than fit make each other late
def serve(gpu, requests):
    """A stream a request."""
    side_by_side = len(requests)
    streams = [gpu.Stream() for _ in range(side_by_side)]
    for first in range(0, len(requests), side_by_side):
        group = list(enumerate(requests))[first : first + side_by_side]
        for at in range(requests[0]["steps"]):
            for (number, one), stream in zip(group, streams, strict=False):
                if not one["fusible"]:
                    one_step(gpu, number, one, at, stream)
                elif at == 0:
                    whole_loop(gpu, number, one, stream)
    gpu.synchronize()
