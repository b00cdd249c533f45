# exercise: intensity
# told: a multiply-add was counted as one operation


def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    return flop / 2, moved_bytes
