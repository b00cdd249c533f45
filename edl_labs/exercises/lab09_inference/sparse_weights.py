"""two_of_four: which weights are kept, how they are packed, the product from them, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, asked_twice, explained_by_changes

_PACKED = {"values": "float64", "places": "uint8"}
_SAME = 1e-9  # of the product's size: float64, added in another order


@exercise("two_of_four")
class TwoOfFourWeights(Exercise):
    """A weight of inputs × outputs pruned to two of four inputs, packed, multiplied, and its share of the time.

    The evidence has the mask, the packed values and places, the product from packed weights that are handed in, and
    shares for several speed-ups.
    """

    answers = ("mask", "tied", "values", "places", "place_bytes", "product", "shares")

    returns: ClassVar[Mapping[str, Any]] = {"pack": tuple[Any, Any], "sparse_share": float}

    def probe(self, student: Any, given: Any) -> Any:
        found, changed = asked_twice(lambda guard: self._asked(student, given, guard))
        return {**found, "changed": changed}

    def _asked(self, student: Any, given: Any, guard: InputGuard) -> dict[str, Any]:
        drawn, x = drawn_weight(given)
        weight = guard("weight", drawn)
        mask = _rows(student.mask(weight))
        tied = _rows(student.mask(guard("weight", _matrix(given["tied"], "float16"))))
        if mask and not all(
            sum(column[at : at + 4]) == 2 for column in zip(*mask, strict=True) for at in range(0, len(mask), 4)
        ):
            # What is packed rests on it: the mask alone says what is wrong.
            nothing: dict[str, Any] = {"values": [], "places": [], "place_bytes": 0, "product": [], "shares": []}
            return {"mask": mask, "tied": tied, **nothing}
        values, places = student.pack(weight)
        packed = [guard(name, _matrix(given["packed"][name], kind)) for name, kind in _PACKED.items()]
        product = student.sparse_product(guard("x", x), *packed)
        return {
            "mask": mask,
            "tied": tied,
            "values": _rows(values),
            "places": _rows(places),
            "place_bytes": int(getattr(places, "nbytes", -1)),
            "product": _rows(product),
            "shares": [float(student.sparse_share(one, peak=peak)) for one, peak in given["speed_ups"]],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with explained_by_changes(got["changed"]):
            self._judge_parts(case, got, want)

    def _judge_parts(self, case: Any, got: Any, want: Any) -> None:
        if got["mask"] != want["mask"]:
            raise _told_mask(case, got["mask"], want["mask"])
        _judge_tied(case, got["tied"])
        _judge_packed(case, got, want)
        found, right = ([value for row in one["product"] for value in row] for one in (got, want))
        size = max(map(abs, right))
        if len(found) != len(right) or not all(
            close(a, b, atol=_SAME * size) for a, b in zip(found, right, strict=True)
        ):
            why = f"got {found[0]:.6g} as the first value, expected {right[0]:.6g}" if found else "the product is empty"
            then = "find the inputs from the places: values 2 g and 2 g + 1 of a column belong to inputs 4 g to 4 g + 3"
            raise Wrong("your product from packed weights is wrong", why=why, next=then)
        _judge_shares(case, got["shares"], want["shares"])

    def student_inputs(self, case: Any) -> Any:
        """The weight, the input and the packed weights as tensors."""
        weight, x = drawn_weight(case)
        packed = {name: _matrix(case["packed"][name], kind) for name, kind in _PACKED.items()}
        return {
            "weight": weight,
            "x": x,
            **packed,
            "speed_ups": case["speed_ups"],
            "tied": _matrix(case["tied"], "float16"),
        }

    def format_answer(self, case: Any, got: Any) -> str:
        """The first column of mask and values, the first row of places, the shares."""
        column = "".join("x" if row[0] else "." for row in got["mask"])
        values = ", ".join(f"{row[0]:.3g}" for row in got["values"][:4])
        places = ", ".join(f"{int(one):08b}" for row in got["places"][:2] for one in row[:1])
        return f"first column {column}, values {values} …, places {places} …; shares {got['shares']}"

    def format_case(self, case: Any) -> str:
        """Sizes, and the first column."""
        weight, _ = drawn_weight(case)
        column = ", ".join(f"{float(one):.3g}" for one in weight[:8, 0])
        return f"a weight of {case['inputs']} inputs × {case['outputs']} outputs; the first column begins {column}"


def drawn_weight(case: Any) -> tuple[Any, Any]:
    """The weight (inputs × outputs) and an input (3 × inputs), in float64."""
    import torch

    drawn = torch.Generator().manual_seed(case["seed"])
    weight = torch.randn(case["inputs"], case["outputs"], generator=drawn, dtype=torch.float64)
    # Some groups are small as a whole, others large: what is best in a group is not what is best in the column.
    weight *= torch.logspace(-1, 1, case["inputs"], dtype=torch.float64).view(-1, 1)
    weight = torch.round(weight, decimals=4)  # what goldens hold of them is exact
    return weight, torch.randn(3, case["inputs"], generator=drawn, dtype=torch.float64)


def _matrix(rows: Any, dtype: str) -> Any:
    import torch

    return torch.tensor(rows, dtype=getattr(torch, dtype))


def _rows(given: Any) -> list[list[float]]:
    import torch

    if given is None:
        return []
    # float32 would round what is given as lists of numbers.
    table = torch.as_tensor(given, dtype=None if hasattr(given, "dtype") else torch.float64)
    if table.ndim != 2:
        table = table.reshape(1, -1)
    return [[float(one) for one in row] for row in table.to(torch.float64).tolist()]


def _told_mask(case: Any, got: Any, want: Any) -> Wrong:
    inputs, outputs = case["inputs"], case["outputs"]
    if [len(got), len(got[0]) if got else 0] != [inputs, outputs]:
        why = f"got {len(got)}×{len(got[0]) if got else 0}, expected {inputs}×{outputs}"
        return Wrong("your mask does not have the weight's shape", why=why, next="return True or False for each weight")
    weight, _ = drawn_weight(case)
    columns = [[got[at][column] for at in range(inputs)] for column in range(outputs)]
    kept = sum(map(sum, columns))
    why = f"{kept:g} of {inputs * outputs} weights are kept"
    if [[1 - one for one in row] for row in got] == want:
        return Wrong(
            "your mask is inverted",
            why="True and False are exchanged",
            next="return True for a weight that is kept",
        )
    if got == _best(weight, 4, by=lambda value: value):
        return Wrong(
            "your mask keeps the largest signed values, not the largest magnitudes",
            why="your mask is exactly the one that keeps the largest signed values",
            next="compare absolute values",
        )
    if all(sum(column[at : at + 4]) == 2 for column in columns for at in range(0, inputs, 4)):
        if got == _first_of_order(weight):
            then = "find the rank of each weight: argsort returns the index of the weight at each rank"
            what = "your code uses the result of argsort as the ranks of the weights"
            return Wrong(what, why=f"{why}, two in each group", next=then)
        what = "your mask does not keep the two largest magnitudes of each group"
        return Wrong(what, why=f"{why}, two in each group", next="compare the magnitudes within each group")
    if got == _best(weight, inputs, by=abs):
        then = "consider the groups of four inputs: how many weights do you keep if all four of a group are large?"
        return Wrong("your mask keeps the largest half of each column, regardless of the groups", why=why, next=then)
    flat = [one for row in got for one in row]
    if all(sum(flat[at : at + 4]) == 2 for at in range(0, len(flat) - 3, 4)):
        if all(sum(row[at : at + 4]) == min(2, len(row) - at) for row in got for at in range(0, outputs, 4)):
            return Wrong(_WRONG_SIDE, why=_ALONG, next=_SUMMED)
        why = "your mask keeps two of every four weights in the order of the flattened tensor"
        return Wrong("your code forms groups across rows", why=why, next="form groups of inputs, for each output")
    if all(sum(row[at : at + 4]) == min(2, len(row) - at) for row in got for at in range(0, outputs, 4)):
        return Wrong(_WRONG_SIDE, why=_ALONG, next=_SUMMED)
    if abs(kept - inputs * outputs / 2) < 1:
        then = "keep two in each group of four inputs, in every column"
        return Wrong("your mask keeps half of all weights, regardless of the groups", why=why, next=then)
    then = "keep two of every four consecutive inputs in a column"
    return Wrong("your mask does not keep two weights in every group", why=why, next=then)


_WRONG_SIDE = "your code forms groups along the outputs"
_ALONG = "each row of your mask keeps two of every four columns"
_SUMMED = "choose two of every four inputs in a column, because the product sums over inputs"


def _best(weight: Any, size: int, *, by: Any) -> list[list[float]]:
    """The mask that keeps the larger half of every `size` neighbours in a column, as rows."""
    rows = [[by(float(one)) for one in row] for row in weight]
    mask = [[0.0] * len(rows[0]) for _ in rows]
    for column in range(len(rows[0])):
        for start in range(0, len(rows), size):
            order = sorted(range(start, start + size), key=lambda at: -rows[at][column])
            for at in order[: size // 2]:
                mask[at][column] = 1.0
    return mask


def _judge_tied(case: Any, got: list[list[float]]) -> None:
    """Two of each four stay where magnitudes are equal, too: any two of those that are largest."""
    tied = [[abs(value) for value in row] for row in case["tied"]]
    for column in range(len(tied[0])):
        for start in range(0, len(tied), 4):
            given = [tied[at][column] for at in range(start, start + 4)]
            kept = [value for at, value in enumerate(given) if got[start + at][column]] if len(got) == len(tied) else []
            why = f"for the magnitudes {', '.join(f'{one:g}' for one in given)}, your mask keeps {len(kept)} of 4"
            if len(kept) != 2:
                then = (
                    "keep exactly two weights, and choose freely among equal ones: a threshold keeps all values that "
                    "reach it"
                )
                raise Wrong(
                    "your mask does not keep exactly two weights in groups with equal magnitudes", why=why, next=then
                )
            if sorted(kept) != sorted(given)[2:]:
                what = "your mask does not keep the two largest weights of a group with equal magnitudes"
                raise Wrong(what, why=why, next="keep the two largest magnitudes")


def _judge_packed(case: Any, got: Any, want: Any) -> None:
    shapes = [
        [len(one), len(one[0]) if one else 0] for one in (got["values"], want["values"], got["places"], want["places"])
    ]
    if shapes[0] != shapes[1]:
        why = f"got {shapes[0][0]}×{shapes[0][1]}, expected {shapes[1][0]}×{shapes[1][1]}"
        raise Wrong("your kept values have the wrong shape", why=why, next="return half as many rows as `weight` has")
    if got["values"] != want["values"]:
        why = _first_group_off(got["values"], want["values"])
        if [sorted(row) for row in _pairs(got["values"])] == [sorted(row) for row in _pairs(want["values"])]:
            raise Wrong(
                "in your answer, the two values of a group are in the wrong order",
                why=why,
                next="put the lower input first",
            )
        if got["values"] == [[abs(value) for value in row] for row in want["values"]]:
            raise Wrong(
                "your code loses the signs of the kept values", why=why, next="choose by magnitude, but keep the values"
            )
        if sorted(one for row in got["values"] for one in row) == sorted(one for row in want["values"] for one in row):
            then = "pack each column of the weight into one column, with its groups from top to bottom"
            raise Wrong("your code packs the kept values in the wrong order", why=why, next=then)
        then = "pack only the values for which mask(weight) is True"
        raise Wrong("your packed values are not those that the mask keeps", why=why, next=then)
    if shapes[2] != shapes[3]:
        each = case["inputs"] // 2
        why = f"got {shapes[2][0]}×{shapes[2][1]}, expected {shapes[3][0]}×{shapes[3][1]}"
        if shapes[2][0] in (each, each // 2):
            then = "put four places, those of two groups, into each byte: a place needs only two bits"
            raise Wrong("each of your bytes holds too few places", why=why, next=then)
        raise Wrong("your places have the wrong shape", why=why, next="use one byte for eight inputs, in each column")
    if got["places"] != want["places"]:
        why = f"got {int(got['places'][0][0]):08b} as the first byte, expected {int(want['places'][0][0]):08b}"
        turned = [[(int(one) >> 4) | (int(one) & 15) << 4 for one in row] for row in want["places"]]
        if got["places"] == turned:
            raise Wrong(
                "in your bytes, the two groups are exchanged", why=why, next="put the first group into the lowest bits"
            )
        swapped = [[_swapped(int(one)) for one in row] for row in want["places"]]
        if got["places"] == swapped:
            raise Wrong(
                "in your answer, the two places of a group are in the wrong order",
                why=why,
                next="put the lower place into the lower bits",
            )
        if got["places"] == [[_backwards(int(one)) for one in row] for row in want["places"]]:
            raise Wrong(
                "your code fills a byte with places from its highest bits",
                why=why,
                next="put the first place into the lowest two bits",
            )
        if got["places"] == [[_of_inputs(int(one), 8 * at) for one in row] for at, row in enumerate(want["places"])]:
            then = "pack the input's number within its group, 0 to 3, in two bits"
            raise Wrong("your code packs the numbers of inputs instead of their places in a group", why=why, next=then)
        raise Wrong(
            "your code packs the places wrongly",
            why=why,
            next="put the first place into the lowest two bits, the next one above it, and so on",
        )
    if got["place_bytes"] != case["inputs"] * case["outputs"] // 8:
        if got["place_bytes"] < 0:
            raise Wrong(
                "your places are not a tensor",
                why="got plain numbers instead of a tensor",
                next="return torch.tensor(…, dtype=torch.uint8)",
            )
        why = f"got {got['place_bytes']} bytes, expected {case['inputs'] * case['outputs'] // 8}"
        raise Wrong("your places do not take one byte for each entry", why=why, next="use the type torch.uint8")


def _first_group_off(got: list[list[float]], want: list[list[float]]) -> str:
    """Both values of the first group that differs."""
    for column in range(len(want[0])):
        for at in range(0, len(want), 2):
            found, right = ([rows[at + i][column] for i in range(2)] for rows in (got, want))
            if found != right:
                pairs = [" and ".join(f"{one:.6g}" for one in pair) for pair in (found, right)]
                return f"group {at // 2} of output {column} has {pairs[0]}, expected {pairs[1]}"
    return ""


def _first_of_order(weight: Any) -> list[list[float]]:
    """The mask of those who write `argsort < 2` for the two largest."""
    order = weight.abs().unflatten(0, (-1, 4)).argsort(dim=1, descending=True)
    return _rows((order < 2).flatten(0, 1))


def _pairs(rows: Any) -> list[list[float]]:
    return [[rows[at][column], rows[at + 1][column]] for at in range(0, len(rows), 2) for column in range(len(rows[0]))]


def _swapped(byte: int) -> int:
    return (byte & 0b0011_0011) << 2 | (byte & 0b1100_1100) >> 2


def _of_inputs(byte: int, first: int) -> int:
    """The byte if the numbers of inputs are added up, two bits further each, in place of places."""
    inputs = [first + 4 * (at // 2) + (byte >> 2 * at & 3) for at in range(4)]
    return sum(one << 2 * at for at, one in enumerate(inputs)) & 255


def _backwards(byte: int) -> int:
    return sum((byte >> 2 * at & 3) << 2 * (3 - at) for at in range(4))


def _judge_shares(case: Any, got: Any, want: Any) -> None:
    asked = case["speed_ups"]
    if all(close(a, b) for a, b in zip(got, want, strict=True)):
        return
    (faster, peak), found, right = asked[0], got[0], want[0]
    why = f"got {found:.4g}, expected {right:.4g}, for faster={faster:g} and peak={peak:g}"

    def fits(rule: Any) -> bool:
        return all(close(a, rule(*one)) for a, one in zip(got, asked, strict=True))

    if fits(lambda s, p: (s - 1) / (p - 1)):
        then = "start from: time after = time before * (1 - share + share / peak)"
        raise Wrong("your function treats the speed-up as proportional to the share", why=why, next=then)
    if fits(lambda s, p: (s - 1) / (1 - 1 / p)):
        then = "use times instead of speeds: at s times the speed, the time is 1 / s"
        raise Wrong("your function treats 30 % faster as 30 % less time", why=why, next=then)
    if fits(lambda s, p: 1 - 1 / s):
        then = "which fraction of their time did the products save? The products still take the rest of their time"
        raise Wrong("your function returns the time saved as the share", why=why, next=then)
    if fits(lambda s, p: 1 / (1 - 1 / s + 1 / (s * p))) or fits(lambda s, p: s / p):
        then = "which part of the original time becomes shorter, and by how much?"
        raise Wrong("your function returned something other than a share of the original time", why=why, next=then)
    if all(close(a, 1 - b) for a, b in zip(got, want, strict=True)):
        then = "return the products' share of the original time"
        raise Wrong("your function returned the share of everything else", why=why, next=then)
    if all(close(a, 100 * b) for a, b in zip(got, want, strict=True)):
        raise Wrong("your function returned a percentage, not a fraction", why=why, next="return 0.46 for 46 %")
    then = "write down the time before and after"
    raise Wrong("your share of the time does not explain this speed-up", why=why, next=then)
