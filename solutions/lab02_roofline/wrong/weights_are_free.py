# exercise: intensity
# told: the weights were left out


def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    if op["kind"] == "linear":
        moved_bytes -= op["itemsize"] * op["inputs"] * op["outputs"]
    return flop, moved_bytes
