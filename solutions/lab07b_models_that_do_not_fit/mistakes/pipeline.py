# %% mistake="all_warm_up_alike"
# told: in your schedule, every stage warms up as long as the first stage
def order(schedule, stage, stages, micro):
    """Every stage holds p micro-batches."""
    warm = micro if schedule == "gpipe" else min(micro, stages - 1)
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]


# %% mistake="both_stages_send"
# told: in your schedule, stages send at the same time, but none of them receives
# %% replace
stage.isend_forward(i)
# %% by
stage.send_forward(i)
# %% replace
stage.isend_backward(i)
# %% by
stage.send_backward(i)


# %% mistake="bubble_of_each_micro_batch"
# told: your result counts the bubble several times
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """Fills and drains for every micro-batch."""
    return micro * (stages - 1) * (forward_s + backward_s) / chunks


# %% mistake="chunks_do_not_matter"
# told: your result ignores that interleaved chunks shrink the bubble
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """All schedules have the same bubble."""
    return (stages - 1) * (forward_s + backward_s)


# %% mistake="gpipe_for_both"
# told: all micro-batches are in flight at once
def order(schedule, stage, stages, micro):
    """All forward passes, then all backward passes."""
    return [("forward", i) for i in range(micro)] + [
        ("backward", i) for i in range(micro)
    ]


# %% mistake="idles_for_itself"
# told: your result counts a stage's own pass as idle time
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """A pass of every stage."""
    return stages * (forward_s + backward_s) / chunks


# %% mistake="newest_first"
# told: in your schedule, a pass does not read the data of its own micro-batch
def order(schedule, stage, stages, micro):
    """In GPipe the last micro-batch goes back first, on all stages but the last."""
    if schedule == "gpipe":
        return [("forward", i) for i in range(micro)] + [
            ("backward", i)
            for i in (range(micro) if stage == stages - 1 else reversed(range(micro)))
        ]
    warm = min(micro, stages - 1 - stage)
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]


# %% mistake="no_warm_up"
# told: in your schedule, micro-batches go through the whole pipeline one at a time
def order(schedule, stage, stages, micro):
    """One forward, one backward, from the first micro-batch on."""
    if schedule == "gpipe":
        return [("forward", i) for i in range(micro)] + [
            ("backward", i) for i in range(micro)
        ]
    return [(kind, i) for i in range(micro) for kind in ("forward", "backward")]


# %% mistake="one_schedule_for_both"
# told: your schedule runs a backward pass too early for GPipe
def order(schedule, stage, stages, micro):
    """1F1B, whatever is asked for."""
    warm = min(micro, stages - 1 - stage)
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]


# %% mistake="one_too_many_in_flight"
# told: your warm-up is too long
def order(schedule, stage, stages, micro):
    """The warm-up of a stage counts the stage itself."""
    warm = micro if schedule == "gpipe" else min(micro, stages - stage)
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]


# %% mistake="receives_late"
# told: cannot do backward(0) yet
# %% replace
if not is_last:
    stage.recv_backward(i)
# %% by
stage.backward(i)
if not is_last:
    stage.recv_backward(i)
# %% replace
stage.backward(i)
# %% by


# %% mistake="receives_one_ahead"
# told: in your schedule, a stage holds more than the data of its micro-batches in flight
def run_stage(stage, schedule):
    """In 1F1B, receives one input ahead."""
    is_first, is_last = stage.stage == 0, stage.stage == stage.stages - 1
    waiting = 0
    for kind, i in order(schedule, stage.stage, stage.stages, stage.micro):
        if kind == "forward":
            while not is_first and waiting <= min(
                i + (schedule == "1f1b"), stage.micro - 1
            ):
                stage.recv_forward(waiting)
                waiting += 1
            stage.forward(i)
            if not is_last:
                stage.isend_forward(i)
        else:
            if not is_last:
                stage.recv_backward(i)
            stage.backward(i)
            if not is_first:
                stage.isend_backward(i)


# %% mistake="receives_two_ahead"
# told: the ranks wait for each other forever
def run_stage(stage, schedule):
    """In 1F1B, receives two inputs ahead."""
    is_first, is_last = stage.stage == 0, stage.stage == stage.stages - 1
    waiting = 0
    for kind, i in order(schedule, stage.stage, stage.stages, stage.micro):
        if kind == "forward":
            while not is_first and waiting <= min(
                i + 2 * (schedule == "1f1b"), stage.micro - 1
            ):
                stage.recv_forward(waiting)
                waiting += 1
            stage.forward(i)
            if not is_last:
                stage.isend_forward(i)
        else:
            if not is_last:
                stage.recv_backward(i)
            stage.backward(i)
            if not is_first:
                stage.isend_backward(i)


# %% mistake="share_for_seconds"
# told: your result is a share of the step, not a time
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """The bubble as a share."""
    return (stages - 1) / (chunks * micro + stages - 1)


# %% mistake="shrinks_the_bubble"
# told: your answer shrinks the bubble of 1F1B, but 1F1B does not shrink the bubble
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """What public teaching material says of 1F1B."""
    if schedule == "1f1b":
        share = 0.18 / 0.43
        return share * (stages - 1) * (forward_s + backward_s)
    return (stages - 1) * (forward_s + backward_s) / chunks


# %% mistake="warm_up_one_too_short"
# told: your warm-up is too short
def order(schedule, stage, stages, micro):
    """One forward pass fewer before the first gradient."""
    warm = micro if schedule == "gpipe" else max(0, min(micro, stages - 2 - stage))
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]
