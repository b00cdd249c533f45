# exercise: autocast_dtype
# told: does not come out in

_right_dtype = autocast_dtype


def autocast_dtype(op, inputs, *, device_type, dtype):
    return _right_dtype(op, inputs, device_type="cuda", dtype=dtype)
