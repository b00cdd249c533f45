# exercise: intensity
# told: the padding was counted as input


def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    if op.get("padding"):
        border = (op["size"] + 2 * op["padding"]) ** 2 - op["size"] ** 2
        moved_bytes += op["itemsize"] * op["batch"] * op["channels"] * border
    return flop, moved_bytes
