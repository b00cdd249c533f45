# exercise: intensity
# told: weights were given the bytes of other elements


def work_of(op, *, rightly=work_of):  # noqa: F821
    return rightly({name: value for name, value in op.items() if name != "weight_itemsize"})
