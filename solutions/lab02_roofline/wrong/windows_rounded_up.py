# exercise: intensity
# told: a window was put where there is no room for it


def work_of(op, *, rightly=work_of):  # noqa: F821
    if op["kind"] not in ("conv", "pool"):
        return rightly(op)
    left = (op["size"] + 2 * op["padding"] - op["kernel"]) % op["stride"]
    return rightly({**op, "size": op["size"] + (op["stride"] - left if left else 0)})
