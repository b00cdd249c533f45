# exercise: strides
# told: tensors that have both layouts are all taken for NCHW
def layout_of(shape, stride):
    """The layout of a tensor, from its strides."""
    found = []
    for layout, inner_first in (("NCHW", (3, 2, 1, 0)), ("NHWC", (1, 3, 2, 0))):
        step, is_it = 1, True
        for at in inner_first:
            is_it = is_it and (shape[at] == 1 or stride[at] == step)
            step *= shape[at]
        found += [layout] * is_it
    return {0: "neither", 2: "NCHW"}.get(len(found), *found[:1])
