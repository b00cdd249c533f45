# exercise: encode_decode
# told: a value was cut off toward zero, or rounded to decimal digits, and this format rounds to the nearest
from functools import wraps


def _cut_off(whole):
    @wraps(whole)
    def encode(value, fmt):
        return whole(value, {**fmt, "rounding": "zero"})

    return encode


encode = _cut_off(encode)
