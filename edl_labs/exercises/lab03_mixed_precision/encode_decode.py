"""encode_decode: drawn formats, codes of every kind, and values that sit where rounding is decided."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong


@exercise("encode_decode", digits=17)
class EncodeDecode(Exercise):
    """Codes to numbers and numbers to codes, in any format of sign, exponent and mantissa.

    `student.decode(code, fmt)` gives a float, `student.encode(value, fmt)` an int; NaN's sign is free.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        fmt, decode, encode = given["format"], student.decode, student.encode
        return {
            "decoded": [_called("decode", decode, code, fmt) for code in given["codes"]],
            "encoded": [_called("encode", encode, value, fmt) for value in given["values"]],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        fmt = case["format"]
        if _other_bias(fmt, got["decoded"], want["decoded"]):
            usual = 2 ** (fmt["exponent_bits"] - 1) - 1
            why = (
                f"your numbers are those of a bias of {usual}, but this format has a bias of "
                f"{fmt['bias']} ({fmt['name']})"
            )
            raise Wrong(
                "your code does not use the bias of the format", why=why, next='use fmt["bias"] in both functions'
            )
        for code, mine, right in zip(case["codes"], got["decoded"], want["decoded"], strict=True):
            if not _same(mine, right):
                why = f"{fmt['name']} {_bits(code, fmt)} is {right!r}, but your decode() returned {mine!r}"
                what, then = _decode_mistake(code, fmt, mine, right), _decode_next(code, fmt, mine, right)
                raise Wrong(what, why=why, next=then)
        rows = zip(case["values"], case["kinds"], got["encoded"], want["encoded"], strict=True)
        wrong = [row for row in rows if not _same_code(row[2], row[3], fmt)]
        if not wrong:
            return
        value, kind, mine, right = wrong[0]
        # Who cuts off sends ties the wrong way as well; a value that is no tie tells the two apart.
        cut = [row for row in wrong if row[1] == "near" and type(row[2]) is int and row[2] == row[3] - 1]
        if kind == "tie" and fmt["rounding"] != "zero" and cut:
            value, kind, mine, right = cut[0]
        came = _bits(mine, fmt) if type(mine) is int else repr(mine)
        why = f"{value!r} in {fmt['name']} is {_bits(right, fmt)}, but your encode() returned {came}"
        then = _TOO_LARGE if _is_largest(mine, right, fmt) else _encode_next(kind, fmt)
        what = _encode_mistake(kind, mine, right, fmt)
        if _is_subnormal(right, fmt) and _flushes(got["encoded"], want["encoded"], fmt):
            what, then = (
                "your encode() returns 0 for values below the smallest normal number",
                _ENCODE_NEXT["subnormal"],
            )
        raise Wrong(what, why=why, next=then)

    def format_answer(self, case: Any, got: Any) -> str:
        """Nothing: of all codes and values the message shows the one that is wrong, and what came back."""
        return ""

    def format_case(self, case: Any) -> str:
        """The format; the message names which of its codes or values went wrong."""
        return ", ".join(f"{name} = {value!r}" for name, value in case["format"].items())


def _called(name: str, function: Any, given: Any, fmt: dict[str, Any]) -> Any:
    """A call of the student's function; what it raises says for which code or value."""
    try:
        return function(given, dict(fmt))
    except NotImplementedError:
        raise
    except Exception as error:
        error.args = (f"{error} in {name}({_call_text(given)}, fmt) with fmt {fmt['name']}",)
        raise


def _call_text(given: Any) -> str:
    if isinstance(given, float) and not math.isfinite(given):
        return f'float("{given}")'
    return repr(given)


def _same(mine: Any, right: float) -> bool:
    if type(mine) not in (int, float):
        return False
    return (
        mine != mine
        if math.isnan(right)
        else mine == right and (right != 0 or _is_negative(mine) == _is_negative(right))
    )


def _other_bias(fmt: dict[str, Any], got: list[Any], want: list[Any]) -> bool:
    """Whether every number is the one that the same bits have with the bias that IEEE formats have."""
    shift = fmt["bias"] - 2 ** (fmt["exponent_bits"] - 1) + 1
    pairs = [(mine, right) for mine, right in zip(got, want, strict=True) if right and math.isfinite(right)]
    return bool(shift and pairs) and all(
        type(mine) in (int, float) and mine == math.ldexp(right, shift) for mine, right in pairs
    )


def _is_negative(number: float) -> bool:
    return math.copysign(1, number) < 0


def _same_code(mine: Any, right: int, fmt: dict[str, Any]) -> bool:
    width = fmt["exponent_bits"] + fmt["mantissa_bits"]
    size, nan = (1 << width) - 1, (1 << width) - 1
    return type(mine) is int and (mine == right or (right & size == nan and mine & size == nan and mine >> width < 2))


def _bits(code: int, fmt: dict[str, Any]) -> str:
    e, m = fmt["exponent_bits"], fmt["mantissa_bits"]
    if not 0 <= code < 2 << (e + m):
        return f"{str(code)[:20]} (not a code of {1 + e + m} bits)"
    text = f"{code:0{1 + e + m}b}"
    return f"{text[0]}.{text[1 : 1 + e]}.{text[1 + e :]}"


def _decode_mistake(code: int, fmt: dict[str, Any], mine: Any, right: float) -> str:
    m = fmt["mantissa_bits"]
    field, finite = code >> m & ((1 << fmt["exponent_bits"]) - 1), type(mine) is int or math.isfinite(mine)
    if math.isnan(right) or math.isinf(right):
        return f"your decode() does not recognise a code of {'NaN' if math.isnan(right) else 'infinity'}"
    if not finite:
        return "your decode() reads a number as infinity or NaN"
    if mine == right == 0:
        return "your decode() loses the sign of a zero: 0.0 and -0.0 have different codes"
    if mine == -right:
        return "your decode() reads the sign the wrong way round"
    if field == 0 and 2 * mine == right:
        return (
            "your decode() halves the value of a subnormal: a subnormal has the "
            "exponent that belongs to exponent field 1, but no leading 1"
        )
    if field == 0:
        return "your decode() reads a subnormal like a normal number"
    if mine and right and math.frexp(mine / right)[0] == 0.5:
        return "your decode() returns a number that is off by a power of two"
    return "your decode() returns the wrong number for a code"


def _magnitude(code: int, fmt: dict[str, Any]) -> int:
    """A code without its sign."""
    return code % (1 << fmt["exponent_bits"] + fmt["mantissa_bits"])


def _is_subnormal(code: int, fmt: dict[str, Any]) -> bool:
    return 0 < _magnitude(code, fmt) < 1 << fmt["mantissa_bits"]


def _flushes(got: list[Any], want: list[int], fmt: dict[str, Any]) -> bool:
    """Whether a zero came back for every subnormal."""
    pairs = [(mine, right) for mine, right in zip(got, want, strict=True) if _is_subnormal(right, fmt)]
    return len(pairs) > 1 and all(type(mine) is int and _magnitude(mine, fmt) == 0 for mine, _ in pairs)


def _encode_mistake(kind: str, mine: Any, right: int, fmt: dict[str, Any]) -> str:
    width = fmt["exponent_bits"] + fmt["mantissa_bits"]
    if type(mine) is int and mine == right ^ (1 << width):
        return "your encode() loses or flips the sign of a value"
    if fmt["rounding"] == "zero" and kind in ("edge", "large") and type(mine) is int and mine == right + 1:
        return (
            "your encode() returns infinity for a finite value beyond the range, but "
            "rounding toward zero gives the largest number"
        )
    if kind == "exact" and type(mine) is int and _half_significand(mine, right, fmt):
        return "your encode() takes the fraction of math.frexp to be from 1 to 2, but it is from 0.5 to 1"
    if type(mine) is int and mine == right - (1 << fmt["mantissa_bits"]) and right % (1 << fmt["mantissa_bits"]) == 0:
        return (
            "your encode() loses the carry: a value is rounded up to "
            "the next power of two, but its exponent stays the same"
        )
    if fmt["rounding"] == "zero" and kind not in ("exact", "infinity", "NaN", "zero"):
        return "your encode() does not round a value toward zero"
    if type(mine) is int and kind == "near" and mine == right - 1:
        return (
            "your encode() cuts off a value toward zero, or rounds to "
            "decimal digits, but this format rounds to the nearest"
        )
    if kind == "edge" and _is_largest(mine, right, fmt):
        return "your encode() returns the largest number for a value that is rounded beyond it"
    if type(mine) is int and kind in ("tie", "subnormal", "edge") and abs(mine - right) == 1 and right % 2 == 0:
        return "your encode() rounds a tie to its odd neighbour"
    return _ENCODE_WHAT[kind]


def _is_largest(mine: Any, right: int, fmt: dict[str, Any]) -> bool:
    """Whether the largest number came back for infinity, or for NaN where there is no infinity."""
    size = (2 << fmt["exponent_bits"] + fmt["mantissa_bits"] >> 1) - 1
    largest = (size >> fmt["mantissa_bits"] << fmt["mantissa_bits"]) - 1 if fmt["has_inf"] else size - 1
    return type(mine) is int and mine == right - 1 and mine & size == largest


def _half_significand(mine: int, right: int, fmt: dict[str, Any]) -> bool:
    """Whether the exponent is one more, and the significand half: of a normal number with room above it."""
    m = fmt["mantissa_bits"]
    leading = 1 << m
    field = right >> m & ((1 << fmt["exponent_bits"]) - 1)
    halved = right + leading - (leading + right % leading + 1) // 2
    return field > 0 and right % leading > 1 and mine in (halved, halved - 1, halved + 1)


def _encode_next(kind: str, fmt: dict[str, Any]) -> str:
    if fmt["rounding"] == "zero" and kind in ("tie", "near", "subnormal", "flush", "edge", "large"):
        return "this format's rounding is 'zero': always choose the neighbour that is nearer to zero"
    return _ENCODE_NEXT[kind]


def _decode_next(code: int, fmt: dict[str, Any], mine: Any, right: float) -> str:
    top = (1 << fmt["exponent_bits"]) - 1
    is_lost_number = math.isfinite(right) and not math.isfinite(mine)
    if is_lost_number and not fmt["has_inf"] and code >> fmt["mantissa_bits"] & top == top:
        return "without infinity, an exponent field of all ones contains numbers, too: what else must a NaN have?"
    return "split the code into sign, exponent field and mantissa field: is the exponent field 0, or all ones?"


_TOO_LARGE = "return infinity for a value that is too large, or NaN if the format has no infinity"
_ENCODE_WHAT = {
    "exact": "your encode() changes a number that the format can represent",
    "tie": "your encode() does not round a tie to one of its neighbours",
    "near": "your encode() does not round a value to the nearest number",
    "subnormal": "your encode() does not round a value between two subnormals to one of them",
    "flush": "your encode() does not round a value near half of the smallest number to the nearest",
    "edge": "your encode() does not round a value at the end of the range before it compares the value with the range",
    "large": "your encode() does not turn a value beyond the range into infinity (or NaN, if there is no infinity)",
    "infinity": "your encode() does not keep infinity (or return NaN, if there is no infinity)",
    "NaN": "your encode() does not keep NaN",
    "zero": "your encode() does not keep zero",
}
_ENCODE_NEXT = {
    "exact": "decode the code that you returned, and compare it with the value",
    "tie": "for a value exactly half way between two numbers, choose the one whose last bit is 0",
    "near": (
        "divide by the distance between neighbours at this exponent, and round the quotient to a whole number; "
        "int() cuts off, and round(x, m) keeps m decimal digits, not m bits"
    ),
    "subnormal": "below the smallest normal number, use one fixed distance between neighbours: it "
    "no longer shrinks there",
    "flush": "treat exactly half of the smallest number as a tie between 0 and the smallest number",
    "edge": "round as if there were larger exponents; only then check whether the result is too large for the format",
    "large": "which code does the format have for a value that is too large?",
    "infinity": "handle infinity first: math.frexp(inf) has no usable exponent",
    "NaN": "return the code with every bit of exponent and mantissa set",
    "zero": "use math.copysign(1, value) to tell 0.0 from -0.0, which have two codes; math.frexp(0.0) has no exponent",
}
