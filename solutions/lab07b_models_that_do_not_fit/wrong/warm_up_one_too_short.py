# exercise: pipeline
# told: the warm-up is too short
def order(schedule, stage, stages, micro):
    """One forward pass fewer before the first gradient."""
    warm = micro if schedule == "gpipe" else max(0, min(micro, stages - 2 - stage))
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]
