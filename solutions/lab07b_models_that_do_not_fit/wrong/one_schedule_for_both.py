# exercise: pipeline
# told: GPipe runs all forward passes first
def order(schedule, stage, stages, micro):
    """1F1B, whatever is asked for."""
    warm = min(micro, stages - 1 - stage)
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]
