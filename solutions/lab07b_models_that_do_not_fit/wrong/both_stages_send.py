# exercise: pipeline
# told: two stages send to each other
def run_stage(stage, schedule):
    """Every message is waited for."""
    is_first, is_last = stage.stage == 0, stage.stage == stage.stages - 1
    for kind, i in order(schedule, stage.stage, stage.stages, stage.micro):
        if kind == "forward":
            if not is_first:
                stage.recv_forward(i)
            stage.forward(i)
            if not is_last:
                stage.send_forward(i)
        else:
            if not is_last:
                stage.recv_backward(i)
            stage.backward(i)
            if not is_first:
                stage.send_backward(i)
