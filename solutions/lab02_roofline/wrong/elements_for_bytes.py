# exercise: intensity
# told: elements were counted, not bytes


def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    return flop, moved_bytes / op["itemsize"]
