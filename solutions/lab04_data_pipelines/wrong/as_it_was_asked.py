# exercise: read_plan
# told: the plan does not read in the order of the disk


def read_plan(wanted, *, seek_s, byte_per_s):
    return list(wanted)
