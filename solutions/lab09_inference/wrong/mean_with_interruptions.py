# exercise: fuse_and_tune
# told: the mean of the runs was taken, interrupted ones included
def typical_s(times_s):
    """The time of a tactic."""
    return sum(times_s[1:]) / len(times_s[1:])
