# exercise: encode_decode
# told: a value was not cut off toward zero


_right_encode = encode


def encode(value, fmt):
    return _right_encode(value, {**fmt, "rounding": "nearest"})
