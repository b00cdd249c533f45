# exercise: read_plan
# told: the plan jumps where it could read on
# like: one_read_a_sample.py


def read_plan(wanted, *, seek_s, byte_per_s):
    return list(wanted)
