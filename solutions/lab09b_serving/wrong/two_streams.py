# exercise: streams
# told: too few streams to fill the chip
def serve(gpu, requests):
    """Two."""
    side_by_side = min(2, max(1, gpu.machine.sm_count // requests[0]["blocks"]))
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
