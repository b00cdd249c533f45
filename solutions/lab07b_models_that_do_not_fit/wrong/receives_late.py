# exercise: pipeline
# told: cannot do backward(0) yet
def run_stage(stage, schedule):
    """Gradients are received after the pass that needs them."""
    is_first, is_last = stage.stage == 0, stage.stage == stage.stages - 1
    for kind, i in order(schedule, stage.stage, stage.stages, stage.micro):
        if kind == "forward":
            if not is_first:
                stage.recv_forward(i)
            stage.forward(i)
            if not is_last:
                stage.isend_forward(i)
        else:
            stage.backward(i)
            if not is_last:
                stage.recv_backward(i)
            if not is_first:
                stage.isend_backward(i)
