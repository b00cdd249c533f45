# %% mistake="changed_classes_alone"
# told: the classes that do not change were left out
import math


def speedup(classes, faster):
    left = sum(classes[name]["time_share"] / factor for name, factor in faster.items())
    return 1 / left if left else math.inf


# %% mistake="flops_for_time"
# told: FLOPs were taken for time
def speedup(classes, faster):
    return 1 / sum(
        row["flop_share"] / faster.get(name, 1.0) for name, row in classes.items()
    )


# %% mistake="mean_of_factors"
# told: the factors were averaged
def speedup(classes, faster):
    return sum(
        row["time_share"] * faster.get(name, 1.0) for name, row in classes.items()
    )


# %% mistake="nothing_gets_slower"
# told: a factor below 1 was not used
def speedup(classes, faster):
    return 1 / sum(
        row["time_share"] / max(1.0, faster.get(name, 1.0))
        for name, row in classes.items()
    )


# %% mistake="what_is_left"
# told: that is the share of time that remains, not the speed-up
def speedup(classes, faster):
    return sum(
        row["time_share"] / faster.get(name, 1.0) for name, row in classes.items()
    )
