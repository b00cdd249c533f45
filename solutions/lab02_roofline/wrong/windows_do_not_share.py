# exercise: intensity
# told: the input was read once for every place of the window


def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    if op["kind"] in ("conv", "pool"):
        image = op["batch"] * op["channels"] * op["size"] ** 2
        moved_bytes += op["itemsize"] * image * (op["kernel"] ** 2 - 1)
    return flop, moved_bytes
