# exercise: fuse_and_tune
# told: the first run counts, which loads the kernel
def typical_s(times_s):
    """The time of a tactic."""
    warm = sorted(times_s)
    return warm[len(warm) // 2]
