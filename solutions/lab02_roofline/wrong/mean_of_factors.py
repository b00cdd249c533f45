# exercise: amdahl
# told: the factors were averaged


def speedup(classes, faster):
    return sum(row["time_share"] * faster.get(name, 1.0) for name, row in classes.items())
