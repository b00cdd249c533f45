# exercise: autocast_dtype
# told: of two dtypes float64 is the wider one

_right_dtype = autocast_dtype


def autocast_dtype(op, inputs, *, device_type, dtype):
    if inputs[0] == "float64":
        return "float64"
    others = [one for one in inputs if one != "float64"]
    return _right_dtype(op, others, device_type=device_type, dtype=dtype)
