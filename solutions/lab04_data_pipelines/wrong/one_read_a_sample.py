# exercise: read_plan
# told: every sample is a read of its own


def read_plan(wanted, *, seek_s, byte_per_s):
    return sorted(wanted)
