# exercise: pipeline
# told: a pass reads another micro-batch than its own
def order(schedule, stage, stages, micro):
    """In GPipe the last micro-batch goes back first, on all stages but the last."""
    if schedule == "gpipe":
        return [("forward", i) for i in range(micro)] + [
            ("backward", i) for i in (range(micro) if stage == stages - 1 else reversed(range(micro)))
        ]
    warm = min(micro, stages - 1 - stage)
    done = [("forward", i) for i in range(warm)]
    for i in range(micro - warm):
        done += [("forward", warm + i), ("backward", i)]
    return done + [("backward", i) for i in range(micro - warm, micro)]
