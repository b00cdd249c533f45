# %% mistake="changed_classes_alone"
# told: your code leaves out the classes that do not change
import math


def speedup(classes, faster):
    left = sum(classes[name]["time_share"] / factor for name, factor in faster.items())
    return 1 / left if left else math.inf


# %% mistake="flops_for_time"
# told: your code uses shares of FLOPs, not of time
def speedup(classes, faster):
    return 1 / sum(
        row["flop_share"] / faster.get(name, 1.0) for name, row in classes.items()
    )


# %% mistake="mean_of_factors"
# told: your code averages the factors
def speedup(classes, faster):
    return sum(
        row["time_share"] * faster.get(name, 1.0) for name, row in classes.items()
    )


# %% mistake="nothing_gets_slower"
# told: your code does not use a factor below 1
def speedup(classes, faster):
    return 1 / sum(
        row["time_share"] / max(1.0, faster.get(name, 1.0))
        for name, row in classes.items()
    )


# %% mistake="what_is_left"
# told: your answer is the share of time that remains
def speedup(classes, faster):
    return sum(
        row["time_share"] / faster.get(name, 1.0) for name, row in classes.items()
    )
