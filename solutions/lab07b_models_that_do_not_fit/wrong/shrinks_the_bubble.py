# exercise: pipeline
# told: 1F1B does not shrink the bubble
def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
    """What public teaching material says of 1F1B."""
    if schedule == "1f1b":
        share = 0.18 / 0.43
        return share * (stages - 1) * (forward_s + backward_s)
    return (stages - 1) * (forward_s + backward_s) / chunks
