# exercise: fuse_and_tune
# told: the fastest run was taken, not a typical one
def typical_s(times_s):
    """The time of a tactic."""
    warm = sorted(times_s[1:])
    return warm[0]
