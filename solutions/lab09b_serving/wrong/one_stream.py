# exercise: streams
# told: one stream leaves most SMs idle
def serve(gpu, requests):
    """One after the other."""
    side_by_side = 1
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
