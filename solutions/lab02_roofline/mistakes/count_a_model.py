# %% mistake="attention_is_free"
# told: your count leaves out the attention itself
def count_block(shape):
    rows, width = shape["batch"] * shape["tokens"], shape["width"]
    per_row = (
        2 * width**2 * (1 + shape["kv_heads"] / shape["heads"])
        + (2 + shape["gated"]) * width * shape["hidden"]
    )
    forward = 2 * rows * per_row
    return forward, forward * (1 if shape["frozen"] else 2)


# %% mistake="backward_is_forward"
# told: your backward pass has only one product for each forward product
def count_block(shape, *, rightly=count_block):  # noqa: F821
    forward, _ = rightly(shape)
    return forward, forward


# %% mistake="frozen_or_not"
# told: your count includes gradients of frozen weights
def count_block(shape, *, rightly=count_block):  # noqa: F821
    return rightly({**shape, "frozen": False})


# %% mistake="heads_are_wide"
# told: your count gives each head the full width
def count_block(shape, *, rightly=count_block):  # noqa: F821
    forward, backward = rightly(shape)
    extra = (
        4
        * shape["batch"]
        * shape["tokens"] ** 2
        * shape["width"]
        * (shape["heads"] - 1)
    )
    return forward + extra, backward + 2 * extra


# %% mistake="no_second_feed_forward_input"
# told: your count leaves out the product with W3, the matrix of the gate
def count_block(shape):
    rows, d = shape["batch"] * shape["tokens"], shape["width"]
    kv = d * shape["kv_heads"] // shape["heads"]
    dense = 2 * rows * d * (2 * d + 2 * kv + 2 * shape["hidden"])
    attention = 2 * 2 * rows * shape["tokens"] * d
    return dense + attention, (1 if shape["frozen"] else 2) * dense + 2 * attention


# %% mistake="values_are_not_projected"
# told: the projection of keys or of values
def count_block(shape):
    rows, d = shape["batch"] * shape["tokens"], shape["width"]
    kv = d * shape["kv_heads"] // shape["heads"]
    dense = 2 * rows * d * (2 * d + kv + (3 if shape["gated"] else 2) * shape["hidden"])
    attention = 2 * 2 * rows * shape["tokens"] * d
    return dense + attention, (1 if shape["frozen"] else 2) * dense + 2 * attention
