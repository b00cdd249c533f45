# exercise: strides
# told: the stride of a dimension with one element is compared
def layout_of(shape, stride):
    """The layout of a tensor, from its strides."""
    found = []
    for layout, inner_first in (("NCHW", (3, 2, 1, 0)), ("NHWC", (1, 3, 2, 0))):
        step, is_it = 1, True
        for at in inner_first:
            is_it = is_it and stride[at] == step
            step *= shape[at]
        found += [layout] * is_it
    return (found or ["neither"])[0]
