# exercise: autocast_dtype
# told: does not come out in


def autocast_dtype(op, inputs, *, device_type, dtype):
    return inputs[0]
