# %% mistake="a_stream_for_each"
# told: you use more streams than fit, so requests delay each other
# %% replace
side_by_side = max(1, gpu.machine.sm_count // requests[0]["blocks"])
# %% by
side_by_side = len(requests)


# %% mistake="all_take_turns"
# told: all requests take turns, so all end late
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


# %% mistake="depth_first"
# told: your program feeds one stream at a time
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


# %% mistake="fuses_all"
# told: your program fuses a loop that cannot be a single kernel
def serve(gpu, requests):
    """Loops."""
    side_by_side = max(1, gpu.machine.sm_count // requests[0]["blocks"])
    streams = [gpu.Stream() for _ in range(side_by_side)]
    for first in range(0, len(requests), side_by_side):
        group = list(enumerate(requests))[first : first + side_by_side]
        for at in range(requests[0]["steps"]):
            for (number, one), stream in zip(group, streams, strict=False):
                if False:
                    one_step(gpu, number, one, at, stream)
                elif at == 0:
                    whole_loop(gpu, number, one, stream)
    gpu.synchronize()


# %% mistake="never_fuses"
# told: every time step pays for a launch
def serve(gpu, requests):
    """Step by step."""
    side_by_side = max(1, gpu.machine.sm_count // requests[0]["blocks"])
    streams = [gpu.Stream() for _ in range(side_by_side)]
    for first in range(0, len(requests), side_by_side):
        group = list(enumerate(requests))[first : first + side_by_side]
        for at in range(requests[0]["steps"]):
            for (number, one), stream in zip(group, streams, strict=False):
                if True:
                    one_step(gpu, number, one, at, stream)
                elif at == 0:
                    whole_loop(gpu, number, one, stream)
    gpu.synchronize()


# %% mistake="one_stream"
# told: your single stream leaves most SMs idle
# %% replace
side_by_side = max(1, gpu.machine.sm_count // requests[0]["blocks"])
# %% by
side_by_side = 1


# %% mistake="returns_early"
# told: the answers are not ready when your function returns
# %% replace
gpu.synchronize()
# %% by
return


# %% mistake="steps_in_any_stream"
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


# %% mistake="two_streams"
# told: you use too few streams to fill the chip
# %% replace
side_by_side = max(1, gpu.machine.sm_count // requests[0]["blocks"])
# %% by
side_by_side = min(2, max(1, gpu.machine.sm_count // requests[0]["blocks"]))


# %% mistake="waits_for_each"
# told: the host waits before your program has launched everything
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
