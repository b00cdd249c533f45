# exercise: pipeline
# told: the bubble does not grow with the micro-batches
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """Fills and drains for every micro-batch."""
    return micro * (stages - 1) * (forward_s + backward_s) / chunks
