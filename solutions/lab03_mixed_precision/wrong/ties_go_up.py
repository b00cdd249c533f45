# exercise: encode_decode
# told: a tie went to its odd neighbour


_right_encode = encode


def encode(value, fmt):
    if fmt["rounding"] == "zero" or value == 0 or not math.isfinite(value):
        return _right_encode(value, fmt)
    step = 2.0 ** (max(math.frexp(value)[1] - 1, 1 - fmt["bias"]) - fmt["mantissa_bits"])
    rounded = math.floor(abs(value) / step + 0.5) * step
    return _right_encode(math.copysign(rounded, value), fmt)
