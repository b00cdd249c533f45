# exercise: count_a_model
# told: the backward pass was given one product for each


def count_block(shape, *, rightly=count_block):  # noqa: F821
    forward, _ = rightly(shape)
    return forward, forward
