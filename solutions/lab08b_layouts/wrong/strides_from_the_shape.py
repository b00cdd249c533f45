# exercise: strides
# told: the layout is told from the shape, not from the strides
def layout_of(shape, stride):
    return "NHWC" if shape[-1] < shape[1] else "NCHW"
