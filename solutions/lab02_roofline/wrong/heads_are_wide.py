# exercise: count_a_model
# told: each head was given the full width


def count_block(shape, *, rightly=count_block):  # noqa: F821
    forward, backward = rightly(shape)
    extra = 4 * shape["batch"] * shape["tokens"] ** 2 * shape["width"] * (shape["heads"] - 1)
    return forward + extra, backward + 2 * extra
