# exercise: pipeline
# told: all micro-batches are in flight at once
def order(schedule, stage, stages, micro):
    """All forward passes, then all backward passes."""
    return [("forward", i) for i in range(micro)] + [("backward", i) for i in range(micro)]
