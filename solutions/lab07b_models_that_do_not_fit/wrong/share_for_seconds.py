# exercise: pipeline
# told: that is a share of the step
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """The bubble as a share."""
    return (stages - 1) / (chunks * micro + stages - 1)
