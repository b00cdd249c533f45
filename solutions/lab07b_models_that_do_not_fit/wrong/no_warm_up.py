# exercise: pipeline
# told: one micro-batch after the other goes through the whole pipeline
def order(schedule, stage, stages, micro):
    """One forward, one backward, from the first micro-batch on."""
    if schedule == "gpipe":
        return [("forward", i) for i in range(micro)] + [("backward", i) for i in range(micro)]
    return [(kind, i) for i in range(micro) for kind in ("forward", "backward")]
