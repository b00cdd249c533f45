# exercise: read_plan
# told: the plan jumps where it could read on


def read_plan(wanted, *, seek_s, byte_per_s):
    return sorted(wanted)
