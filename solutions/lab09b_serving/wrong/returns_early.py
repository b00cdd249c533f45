# exercise: streams
# told: the answers are not there yet
def serve(gpu, requests):
    """Nobody waits."""
    side_by_side = max(1, gpu.machine.sm_count // requests[0]["blocks"])
    streams = [gpu.Stream() for _ in range(side_by_side)]
    for first in range(0, len(requests), side_by_side):
        group = list(enumerate(requests))[first : first + side_by_side]
        for at in range(requests[0]["steps"]):
            for (number, one), stream in zip(group, streams, strict=False):
                if not one["fusible"]:
                    one_step(gpu, number, one, at, stream)
                elif at == 0:
                    whole_loop(gpu, number, one, stream)
    return
