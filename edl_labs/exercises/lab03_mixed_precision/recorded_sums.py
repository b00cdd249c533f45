"""accumulate_sum: the student's sum runs on recorded numbers; the judge replays the record in the short format."""

from __future__ import annotations

import hashlib
import math
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.units import counted

_ADD, _SUBTRACT = 0, 1  # codes of the operations on the tape
_MOST_OPERATIONS = 8  # a value; Kahan's sum takes four
LARGEST_ERROR = 4.0  # in the format's own roundings, as the lab's text promises
_PRIME = 2**61 - 1  # marks of values are added in a field so large that two sums are never alike by chance


@exercise("accumulate_sum")
class AccumulateSum(Exercise):
    """A sum that stays right although every intermediate result is rounded to a short format.

    `student.sum_low(values)` gives the sum of numbers that know `+` and `-`, each result rounded.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"operations": [0], "left": [0], "right": [0], "result": 0}

    def probe(self, student: Any, given: Any) -> Any:
        tape = Tape(given)
        numbers = [Number(tape, index, value) for index, value in enumerate(given["values"])]
        result = student.sum_low(numbers)
        index = result.index if type(result) is Number and result.tape is tape else -1
        return {"operations": tape.operations, "left": tape.left, "right": tape.right, "result": index}

    def public_want(self, case: Any, want: Any) -> Any:
        """Nothing: the record of the reference's operations would be the answer."""
        return None

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["result"] == -1:
            why = "your function returned a float, a number from another call, or something else"
            then = "return the result of + and -, without float() or other arithmetic"
            raise Wrong("your sum is not a number of the short format", why=why, next=then)
        values = _replay(case, got)
        count, exact = len(case["values"]), math.fsum(case["values"])
        if len(got["operations"]) > _MOST_OPERATIONS * count:
            why = f"it takes {len(got['operations'])} operations for {count} values"
            raise Wrong("your sum takes too many operations", why=why, next="use fewer: four per value are enough")
        mine = values[got["result"]]
        error = abs(mine - exact) / exact * 2.0 ** (case["mantissa_bits"] + 1)
        if not error <= LARGEST_ERROR:
            raise _off(case, got, mine, exact, error)
        _refuse_other_sums(case, got)

    def format_case(self, case: Any) -> str:
        """The format and the first values."""
        some = ", ".join(f"{value:.6g}" for value in case["values"][:4])
        return f"{case['name']}, {len(case['values'])} values: {some}, … (sum {math.fsum(case['values']):.6g})"


class Tape:
    """The operations on one call's numbers, in order, as lists of operand indices."""

    def __init__(self, fmt: dict[str, Any]) -> None:
        self.fmt, self.first = fmt, len(fmt["values"])
        self.operations: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []

    def record(self, operation: int, left: Number, right: object) -> Number:
        """The rounded result of an operation on two numbers of this tape."""
        if type(right) is not Number or right.tape is not self:
            raise TypeError("only numbers of the short format and a plain 0 can be added or subtracted")
        if len(self.operations) >= 40 * self.first:
            raise RuntimeError(f"more than {40 * self.first} operations for {self.first} values")
        index = self.first + len(self.operations)
        self.operations.append(operation)
        self.left.append(left.index)
        self.right.append(right.index)
        return Number(self, index, _apply(operation, left.value, right.value, self.fmt))


class Number:
    """A number of a short format: `+`, `-` and `float()`; adding a plain 0 changes nothing, so `sum` works."""

    __slots__ = ("index", "tape", "value")

    def __init__(self, tape: Tape, index: int, value: float) -> None:
        self.tape, self.index, self.value = tape, index, value

    def __add__(self, other: object) -> Number:
        return self if _zero(other) else self.tape.record(_ADD, self, other)

    def __sub__(self, other: object) -> Number:
        return self if _zero(other) else self.tape.record(_SUBTRACT, self, other)

    __radd__ = __add__

    def __rsub__(self, other: object) -> Number:
        # 0 - x, of numbers of the tape alone.
        return (self - self) - self if _zero(other) else self.tape.record(_SUBTRACT, self, other)

    def __mul__(self, other: object) -> Number:
        raise TypeError("these numbers support only + and -; the values may all differ, so add each of them")

    __rmul__ = __truediv__ = __rtruediv__ = __mul__

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a number of the short format has no {name!r}; a float would be a wider accumulator: "
            "add the numbers themselves, with + and -"
        )

    def __float__(self) -> float:
        return self.value


def _zero(other: object) -> bool:
    return type(other) in (int, float) and other == 0


def _apply(operation: int, left: float, right: float, fmt: dict[str, Any]) -> float:
    return rounded(left + right if operation == _ADD else left - right, fmt)


def rounded(value: float, fmt: dict[str, Any]) -> float:
    step = math.ldexp(1.0, max(math.frexp(value)[1] - 1, fmt["low"]) - fmt["mantissa_bits"])
    return round(value / step) * step


def _replay(case: Any, got: Any) -> list[float]:
    """Every number of the record, computed again; Wrong when the record is none."""
    values = list(case["values"])
    for operation, left, right in zip(got["operations"], got["left"], got["right"], strict=True):
        if any(type(i) is not int or not 0 <= i < len(values) for i in (left, right)) or operation not in (0, 1):
            raise _no_record()
        values.append(_apply(operation, values[left], values[right], case))
    if type(got["result"]) is not int or not 0 <= got["result"] < len(values):
        raise _no_record()
    return values


def _refuse_other_sums(case: Any, got: Any) -> None:
    """Wrong unless the result is, but for rounding, the sum in which every value stands exactly once.

    Each value gets a number that follows from the record itself, so that no record can be made to fit; additions are
    followed with these numbers, without rounding, as the same additions of any values.
    """
    digest = hashlib.blake2b(repr([got["operations"], got["left"], got["right"]]).encode()).digest()
    values = [_mark(digest, index) for index in range(len(case["values"]))]
    whole = sum(values) % _PRIME
    for operation, left, right in zip(got["operations"], got["left"], got["right"], strict=True):
        values.append((values[left] + values[right] if operation == _ADD else values[left] - values[right]) % _PRIME)
    if values[got["result"]] != whole:
        why = "the returned number is not the result of adding every value exactly once"
        raise Wrong(
            "your sum does not contain every value exactly once",
            why=why,
            next="add the values themselves, each of them once",
        )


def _mark(digest: bytes, index: int) -> int:
    return int.from_bytes(hashlib.blake2b(digest + index.to_bytes(4, "little"), digest_size=8).digest(), "little")


def _no_record() -> Wrong:
    why = "an operation uses a number that did not exist yet"
    return Wrong("the record of the operations cannot be read", why=why, next="restart the kernel and run all cells")


def _off(case: Any, got: Any, mine: float, exact: float, error: float) -> Wrong:
    why = (
        f"{case['name']}: got {mine:.5g}, expected {exact:.5g}; the "
        f"error is {error:.0f} times the format's own rounding"
    )
    if mine < 2 * max(case["values"]):
        return Wrong("most values are missing from your sum", why=why, next="does the sum contain every value once?")
    unused = len(case["values"]) - _entered(case, got)
    if unused > 0.1 * len(case["values"]):
        why = f"the result does not depend on {unused} of the {counted(len(case['values']), 'value')}"
        then = "do your parts cover all values? What is between [:mid] and [mid + 1:]?"
        return Wrong("some of the values never enter your sum", why=why, next=then)
    if unused:
        why = f"the result does not depend on {unused} of the {counted(len(case['values']), 'value')}; {why}"
        then = "what happens to the last value if the number of values is odd?"
        return Wrong("some of the values never enter your sum", why=why, next=then)
    longest = _longest_chain(case, got)
    if longest >= 0.9 * len(case["values"]) and len(got["operations"]) < 1.5 * len(case["values"]):
        then = (
            "what happens to a small number that is added to a large one? Keep the sums small, or add back what is lost"
        )
        why = f"your code adds each value directly to the growing sum, {longest} times in a row; {why}"
        return Wrong("your running sum grew until the added values were lost", why=why, next=then)
    if len(got["operations"]) < 1.5 * len(case["values"]):
        then = "how long may a run of additions be before its sum is much larger than the next value?"
        return Wrong("your partial sums still grow too large", why=why, next=then)
    if not _differences(case, got, got["result"]):
        if _SUBTRACT not in got["operations"]:
            why = f"the result comes only from additions, up to {longest} in a row; {why}"
            then = (
                "which of these sums is much larger than the next value? A sum of values that were set aside grows, too"
            )
            return Wrong("your partial sums still grow too large", why=why, next=then)
        then = "when you add the next value, is the lost part still there, or was it set to 0 or overwritten?"
        return Wrong("you compute the lost part, but never add it back", why=why, next=then)
    if _losses_are_zero(case, got):
        then = "subtract total from new first, then subtract added: each of the two differences is rounded separately"
        why = f"new - (total + added) rounds the same sum twice; {why}"
        raise Wrong("the rounding error that you compute is always 0", why=why, next=then)
    if _only_last_loss(case, got):
        then = "add each loss to the next value before you add that value to the sum"
        why = f"your code computes the loss of each value, but does not add it to the next value; {why}"
        raise Wrong(
            "your code adds back only one loss, the last one, after all values have been added", why=why, next=then
        )
    if _losses_apart(case, got):
        then = "add each loss to the next value instead of to a growing sum of losses"
        return Wrong("you add up the rounding errors in a sum of their own, which loses small ones", why=why, next=then)
    plain = _uncorrected(case, got)
    if plain > len(case["values"]).bit_length():  # as many in a row as a sum of pairs takes, which is right
        why = f"the result comes from {plain} additions in a row that no subtraction checks; {why}"
        return Wrong(
            "some of your additions are not corrected", why=why, next="correct these additions, too, or add up in pairs"
        )
    then = (
        "work out by hand one addition in which something is lost: added is the value minus the old loss; the new loss "
        "is (new − old) − added, and it is subtracted from the next value"
    )
    return Wrong("your result uses differences of sums, but it is still too far off", why=why, next=then)


def _entered(case: Any, got: Any) -> int:
    """How many of the values have a part in the result."""
    return sum(index < len(case["values"]) for index in _parts(case, got, got["result"]))


def _parts(case: Any, got: Any, result: int) -> set[int]:
    """The numbers, values and results, from which one was made, and itself."""
    first = len(case["values"])
    needed, open_ends = {result}, [result]
    while open_ends:
        index = open_ends.pop()
        sides = {got["left"][index - first], got["right"][index - first]} - needed if index >= first else set()
        needed |= sides
        open_ends += sides
    return needed


def _differences(case: Any, got: Any, result: int) -> int:
    """How many subtractions have a part in a number."""
    first = len(case["values"])
    operations = (got["operations"][index - first] for index in _parts(case, got, result) if index >= first)
    return sum(operation == _SUBTRACT for operation in operations)


def _losses_are_zero(case: Any, got: Any) -> bool:
    """Whether all differences are 0, whatever the values are: of one addition that was done twice, for most values.

    Numbers that are the same by their operations alone get the same name. Taking off such a 0 changes nothing.
    """
    names, zero = list(range(len(case["values"]))), -1
    known: dict[tuple[int, int], int] = {}
    twice = 0
    for operation, left, right in zip(got["operations"], got["left"], got["right"], strict=True):
        low, high = sorted((names[left], names[right]))
        if operation == _ADD:
            names.append(high if low == zero else known.setdefault((low, high), len(names)))
        elif names[right] == zero:
            names.append(names[left])
        elif low == high:
            twice += left != right
            names.append(zero)
        else:
            return False
    return twice > 0.9 * len(case["values"])


def _only_last_loss(case: Any, got: Any) -> bool:
    """Whether a loss is worked out for most values, and the last one alone meets a sum without losses, in the end."""
    first, differences = len(case["values"]), [operation == _SUBTRACT for operation in got["operations"]]
    last = got["result"] - first
    if last < 0 or sum(differences) < 0.9 * first or _differences(case, got, got["result"]) > 3:
        return False
    sums, losses = sorted((got["left"][last], got["right"][last]), key=lambda side: _differences(case, got, side))
    return _differences(case, got, sums) == 0 < _differences(case, got, losses) and not any(
        differences[losses - first + 1 : last]
    )


def _losses_apart(case: Any, got: Any) -> bool:
    """Whether a plain running sum and one of the losses of all values meet in the last operation alone."""
    last = got["result"] - len(case["values"])
    if last < 0:
        return False
    sides = (got["left"][last], got["right"][last])
    counts = sorted(_differences(case, got, side) for side in sides)
    return counts[0] == 0 and counts[1] > len(case["values"])


def _uncorrected(case: Any, got: Any) -> int:
    """How many additions in a row end in the result, and are never looked at again by a subtraction."""
    first, depth = len(case["values"]), [0] * len(case["values"])
    steps = list(zip(got["operations"], got["left"], got["right"], strict=True))
    checked = {side for operation, *sides in steps if operation == _SUBTRACT for side in sides}
    for index, (operation, left, right) in enumerate(steps, first):
        depth.append(1 + max(depth[left], depth[right]) if operation == _ADD and index not in checked else 0)
    return depth[got["result"]]


def _longest_chain(case: Any, got: Any) -> int:
    depth = [0] * len(case["values"])
    for left, right in zip(got["left"], got["right"], strict=True):
        depth.append(1 + max(depth[left], depth[right]))
    return depth[got["result"]]
