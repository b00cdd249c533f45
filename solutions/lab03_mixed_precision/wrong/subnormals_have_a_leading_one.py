# exercise: encode_decode
# told: a subnormal was read like a normal number


_right_decode = decode


def decode(code, fmt):
    m, top = fmt["mantissa_bits"], 2 ** fmt["exponent_bits"] - 1
    if (code >> m) & top or not code & (2**m - 1):
        return _right_decode(code, fmt)
    size = (1 + (code & (2**m - 1)) / 2**m) * 2.0 ** (1 - fmt["bias"])
    return -size if code >> m > top else size
