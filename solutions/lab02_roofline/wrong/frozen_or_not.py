# exercise: count_a_model
# told: frozen weights were given gradients


def count_block(shape, *, rightly=count_block):  # noqa: F821
    return rightly({**shape, "frozen": False})
