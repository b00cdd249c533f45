# exercise: encode_decode
# told: the sign of a zero was lost


_right_decode = decode


def decode(code, fmt):
    return _right_decode(code, fmt) or 0.0
