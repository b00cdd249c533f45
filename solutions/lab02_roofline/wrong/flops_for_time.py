# exercise: amdahl
# told: FLOPs were taken for time


def speedup(classes, faster):
    return 1 / sum(row["flop_share"] / faster.get(name, 1.0) for name, row in classes.items())
