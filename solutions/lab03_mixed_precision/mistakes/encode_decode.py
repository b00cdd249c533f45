# %% mistake="always_to_nearest"
# told: your encode() does not round a value toward zero
_right_encode = encode


def encode(value, fmt):
    return _right_encode(value, {**fmt, "rounding": "nearest"})


# %% mistake="cuts_off"
# told: your encode() cuts off a value toward zero, or rounds to decimal digits, but this format rounds to the nearest
from functools import wraps


def _cut_off(whole):
    @wraps(whole)
    def encode(value, fmt):
        return whole(value, {**fmt, "rounding": "zero"})

    return encode


encode = _cut_off(encode)


# %% mistake="every_format_has_infinity"
# told: your decode() reads a number as infinity or NaN
_right_decode = decode


def decode(code, fmt):
    return _right_decode(code, {**fmt, "has_inf": True})


# %% mistake="forgets_the_sign_of_zero"
# told: your decode() loses the sign of a zero
_right_decode = decode


def decode(code, fmt):
    return _right_decode(code, fmt) or 0.0


# %% mistake="subnormals_have_a_leading_one"
# told: your decode() reads a subnormal like a normal number
_right_decode = decode


def decode(code, fmt):
    m, top = fmt["mantissa_bits"], 2 ** fmt["exponent_bits"] - 1
    if (code >> m) & top or not code & (2**m - 1):
        return _right_decode(code, fmt)
    size = (1 + (code & (2**m - 1)) / 2**m) * 2.0 ** (1 - fmt["bias"])
    return -size if code >> m > top else size


# %% mistake="ties_go_up"
# told: your encode() rounds a tie to its odd neighbour
_right_encode = encode


def encode(value, fmt):
    if fmt["rounding"] == "zero" or value == 0 or not math.isfinite(value):
        return _right_encode(value, fmt)
    step = 2.0 ** (
        max(math.frexp(value)[1] - 1, 1 - fmt["bias"]) - fmt["mantissa_bits"]
    )
    rounded = math.floor(abs(value) / step + 0.5) * step
    return _right_encode(math.copysign(rounded, value), fmt)
