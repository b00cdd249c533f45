# exercise: amdahl
# told: a factor below 1 was not used


def speedup(classes, faster):
    return 1 / sum(row["time_share"] / max(1.0, faster.get(name, 1.0)) for name, row in classes.items())
