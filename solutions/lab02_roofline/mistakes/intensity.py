# %% mistake="elements_for_bytes"
# told: your code counts elements, not bytes
def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    return flop, moved_bytes / op["itemsize"]


# %% mistake="multiply_add_is_one"
# told: your code counts a multiply-add as one operation
def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    return flop / 2, moved_bytes


# %% mistake="no_pooling_yet"
# told: your function returned nothing for a pool
from functools import wraps


def _but_for_pool(whole):
    @wraps(whole)
    def work_of(op):
        return None if op["kind"] == "pool" else whole(op)

    return work_of


work_of = _but_for_pool(work_of)


# %% mistake="padding_is_read"
# told: your code counts the padding as input
def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    if op.get("padding"):
        border = (op["size"] + 2 * op["padding"]) ** 2 - op["size"] ** 2
        moved_bytes += op["itemsize"] * op["batch"] * op["channels"] * border
    return flop, moved_bytes


# %% mistake="relu_writes_nothing"
# told: your code leaves out the input or the result of a relu
from functools import wraps


def _but_for_relu(whole):
    @wraps(whole)
    def work_of(op):
        flop, moved_bytes = whole(op)
        return flop, moved_bytes // 2 if op["kind"] == "relu" else moved_bytes

    return work_of


work_of = _but_for_relu(work_of)


# %% mistake="weights_are_free"
# told: your code leaves out the weights
def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    if op["kind"] == "linear":
        moved_bytes -= op["itemsize"] * op["inputs"] * op["outputs"]
    return flop, moved_bytes


# %% mistake="weights_as_wide_as_the_rest"
# told: your code counts the weights with as many bytes as the other elements
def work_of(op, *, rightly=work_of):  # noqa: F821
    return rightly(
        {name: value for name, value in op.items() if name != "weight_itemsize"}
    )


# %% mistake="windows_do_not_share"
# told: your code reads the input once for every place of the window
def work_of(op, *, rightly=work_of):  # noqa: F821
    flop, moved_bytes = rightly(op)
    if op["kind"] in ("conv", "pool"):
        image = op["batch"] * op["channels"] * op["size"] ** 2
        moved_bytes += op["itemsize"] * image * (op["kernel"] ** 2 - 1)
    return flop, moved_bytes


# %% mistake="windows_rounded_up"
# told: your code puts a window where it does not fit
def work_of(op, *, rightly=work_of):  # noqa: F821
    if op["kind"] not in ("conv", "pool"):
        return rightly(op)
    left = (op["size"] + 2 * op["padding"] - op["kernel"]) % op["stride"]
    return rightly({**op, "size": op["size"] + (op["stride"] - left if left else 0)})
