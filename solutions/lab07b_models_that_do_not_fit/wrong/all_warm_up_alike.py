# exercise: pipeline
# told: every stage warms up as long as the first
def order(schedule, stage, stages, micro):
    """Every stage holds p micro-batches."""
    warm = micro if schedule == "gpipe" else min(micro, stages - 1)
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]
