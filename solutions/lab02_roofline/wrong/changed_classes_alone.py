# exercise: amdahl
# told: the classes that do not change were left out

import math


def speedup(classes, faster):
    left = sum(classes[name]["time_share"] / factor for name, factor in faster.items())
    return 1 / left if left else math.inf
