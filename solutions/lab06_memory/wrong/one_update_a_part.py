# exercise: merge_statistics
# told: the running statistics move once a part


def running_statistics(running, parts, *, momentum):
    mean, variance = running
    for part in parts:
        unbiased = part["variance"] * part["count"] / max(1, part["count"] - 1)
        mean = (1 - momentum) * mean + momentum * part["mean"]
        variance = (1 - momentum) * variance + momentum * unbiased
    return mean, variance
