# exercise: amdahl
# told: that is the share of time that is left


def speedup(classes, faster):
    return sum(row["time_share"] / faster.get(name, 1.0) for name, row in classes.items())
