# exercise: merge_statistics
# told: the running variance is kept biased


def running_statistics(running, parts, *, momentum):
    return tuple(
        (1 - momentum) * old + momentum * new for old, new in zip(running, merge_statistics(parts), strict=True)
    )
