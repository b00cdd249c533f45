# exercise: pipeline
# told: a stage idles while the others fill, and not for itself
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """A pass of every stage."""
    return stages * (forward_s + backward_s) / chunks
