# exercise: encode_decode
# told: a number was read as infinity or NaN


_right_decode = decode


def decode(code, fmt):
    return _right_decode(code, {**fmt, "has_inf": True})
