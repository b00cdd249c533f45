# exercise: strides
# told: a layout is read wrongly from the strides
def layout_of(shape, stride):
    """The layout of a tensor; a row of NHWC takes the height for the width."""
    n, c, h, w = shape
    due = {"NCHW": (c * h * w, h * w, w, 1), "NHWC": (c * h * w, 1, h * c, c)}
    fits = [
        name
        for name, steps in due.items()
        if all(size == 1 or step == one for size, step, one in zip(shape, steps, stride, strict=True))
    ]
    return "both" if len(fits) == 2 else fits[0] if fits else "neither"
