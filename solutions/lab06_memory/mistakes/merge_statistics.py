# %% mistake="average_of_variances"
# told: the variance between the parts is missing from your variance
def merge_statistics(parts):
    count = sum(part["count"] for part in parts)
    mean = sum(part["count"] * part["mean"] for part in parts) / count
    return mean, sum(part["count"] * part["variance"] for part in parts) / count


# %% mistake="momentum_of_the_old"
# told: in your update, the weights of the old and the new value are swapped
from functools import wraps


def _turned(exact):
    @wraps(exact)
    def running_statistics(running, parts, *, momentum):
        return exact(running, parts, momentum=1 - momentum)

    return running_statistics


running_statistics = _turned(running_statistics)


# %% mistake="one_update_a_part"
# told: your code updates the running statistics once per part
def running_statistics(running, parts, *, momentum):
    mean, variance = running
    for part in parts:
        unbiased = part["variance"] * part["count"] / max(1, part["count"] - 1)
        mean = (1 - momentum) * mean + momentum * part["mean"]
        variance = (1 - momentum) * variance + momentum * unbiased
    return mean, variance


# %% mistake="parts_weigh_the_same"
# told: in your mean, parts of different sizes have the same weight
def merge_statistics(parts):
    mean = sum(part["mean"] for part in parts) / len(parts)
    return mean, sum(
        part["variance"] + (part["mean"] - mean) ** 2 for part in parts
    ) / len(parts)


# %% mistake="running_kept_biased"
# told: your running variance is biased, but it should be unbiased
def running_statistics(running, parts, *, momentum):
    return tuple(
        (1 - momentum) * old + momentum * new
        for old, new in zip(running, merge_statistics(parts), strict=True)
    )


# %% mistake="squares_cancel"
# told: in your variance, most digits cancel
def merge_statistics(parts):
    count = sum(part["count"] for part in parts)
    mean = sum(part["count"] * part["mean"] for part in parts) / count
    squares = (
        sum(part["count"] * (part["variance"] + part["mean"] ** 2) for part in parts)
        / count
    )
    return mean, squares - mean**2


# %% mistake="variance_of_a_sample"
# told: your variance of the batch is unbiased, but it should be biased
from functools import wraps


def _of_a_sample(exact):
    @wraps(exact)
    def merge_statistics(parts):
        count = sum(part["count"] for part in parts)
        mean, variance = exact(parts)
        return mean, variance * count / (count - 1)

    return merge_statistics


merge_statistics = _of_a_sample(merge_statistics)
