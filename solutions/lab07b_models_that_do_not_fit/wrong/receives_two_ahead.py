# exercise: pipeline
# told: the ranks wait for each other for ever
def run_stage(stage, schedule):
    """In 1F1B, receives two inputs ahead."""
    is_first, is_last = stage.stage == 0, stage.stage == stage.stages - 1
    waiting = 0
    for kind, i in order(schedule, stage.stage, stage.stages, stage.micro):
        if kind == "forward":
            while not is_first and waiting <= min(i + 2 * (schedule == "1f1b"), stage.micro - 1):
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
