"""intensity: the operations and the bytes of single operations, counted by hand."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.evidence_form import answer_text
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import say, two_numbers
from edl_labs.units import counted

_CONTRACTIONS = ("gemm", "matvec", "linear", "conv")


_NOT_WRITTEN = "work_of still raises NotImplementedError"
_WINDOW = {"batch": 2, "channels": 3, "size": 8, "kernel": 2, "stride": 2, "padding": 0}
_ONE_OF_EACH: list[dict[str, Any]] = [  # small ones, which tell a stub from a work_of that lacks some kinds
    {"kind": "gemm", "m": 2, "n": 3, "k": 4, "itemsize": 4},
    {"kind": "matvec", "m": 2, "n": 3, "itemsize": 4},
    {"kind": "linear", "batch": 2, "inputs": 3, "outputs": 4, "itemsize": 4},
    {"kind": "conv", **_WINDOW, "filters": 2, "itemsize": 4},
    {"kind": "pool", **_WINDOW, "itemsize": 4},
    {"kind": "relu", "elements": 8, "itemsize": 4},
    {"kind": "layer_norm", "rows": 2, "features": 4, "itemsize": 4},
]


@exercise("intensity")
class Intensity(Exercise):
    """FLOPs and bytes of deck [002]'s operations, from their shapes.

    `student.work_of(op)` gives `(flop, moved_bytes)` of one operation.
    """

    answers = "all"

    skip_type_check = True  # `two_numbers` names what is asked for

    def probe(self, student: Any, given: Any) -> Any:
        try:
            return student.work_of(dict(given))
        except NotImplementedError:
            if not any(_is_written(student, op) for op in _ONE_OF_EACH):
                raise  # the stub
            return {_NOT_WRITTEN: given["kind"]}

    def format_answer(self, case: Any, got: Any) -> str:
        """What came back; an operation that raises says so above."""
        return "" if got == {_NOT_WRITTEN: case["kind"]} else answer_text(got)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got == {_NOT_WRITTEN: case["kind"]}:
            why = "the branch for another kind is written, but the branch for this kind is not"
            raise Wrong(
                f"{_NOT_WRITTEN} for a {case['kind']}", why=why, next="write this branch, or move it above the `raise`"
            )
        if got is None:
            why = "work_of() does not return anything for this kind yet"
            raise Wrong(
                f"your function returned nothing for a {case['kind']}",
                why=why,
                next="write the branch, or its return statement",
            )
        two_numbers(got, "flop, moved_bytes")
        if close(got[0], want[1], rtol=1e-9) and close(got[1], want[0], rtol=1e-9):
            raise Wrong("the two answers are swapped", why="FLOPs come first", next="return flop, moved_bytes")
        if not close(got[0], want[0], rtol=1e-9):
            raise _flop_mistake(case, got[0] / want[0], total=want[1] / case["itemsize"])
        if not close(got[1], want[1], rtol=1e-9):
            raise _byte_mistake(case, got[1], total=want[1] / case["itemsize"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """All is right, except that all elements have as few bytes as the weights."""
        rows = list(zip(cases, got, want, strict=True))
        narrow = [case for case in cases if _narrow(case) != 1]
        if not narrow or not all(close(mine[0], right[0], rtol=1e-9) for _, mine, right in rows):
            return None
        if not all(
            close(mine[1], _elements(case, right[1]) * _weight_bytes(case), rtol=1e-9) for case, mine, right in rows
        ):
            return None
        return Wrong(_ALL_NARROW, why=_of_weights(narrow[0]), next=_ONLY_THE_WEIGHTS)

    def explain_exception(self, case: Any, kind: str) -> Wrong | None:
        """A key that only some operations have."""
        if kind != "KeyError" or "weight_itemsize" in case:
            return None
        return Wrong(
            f"your code looks up a key that this {case['kind']} does not have",
            why=f"it has {', '.join(case)}; weight_itemsize is present only if weights have a size of their own",
            next="if it is missing, use itemsize for the weights as well: op.get(name, other)",
        )

    def format_case(self, case: Any) -> str:
        return f"{case['kind']}: " + ", ".join(f"{name} {value}" for name, value in case.items() if name != "kind")


def _is_written(student: Any, op: dict[str, Any]) -> bool:
    """Whether there is code for an operation, right or wrong."""
    try:
        student.work_of(dict(op))
    except NotImplementedError:
        return False
    except Exception:  # of code that somebody has written
        return True
    return True


def left_over(case: Any) -> int:
    """Pixels beyond the last window."""
    return int((case["size"] + 2 * case["padding"] - case["kernel"]) % case["stride"])


def _parts(case: Any, total: float) -> dict[str, float]:
    """Elements of each operand: what an answer that leaves one out, or reads one twice, differs by.

    What is read follows from the shapes; the result is what remains of the `total` that the reference counted. All are
    in elements of `itemsize`, so narrow weights count for less.
    """
    kind, narrow = case["kind"], _narrow(case)
    if kind == "gemm":
        read = {"A": case["m"] * case["k"], "B": case["k"] * case["n"]}
    elif kind == "matvec":
        read = {"matrix": case["m"] * case["n"], "vector": case["n"]}
    elif kind == "linear":
        read = {"input": case["batch"] * case["inputs"], "weights": narrow * case["inputs"] * case["outputs"]}
    elif kind in ("conv", "pool"):
        taps = case["channels"] * case["kernel"] ** 2
        weights = {"weights": narrow * case["filters"] * taps} if kind == "conv" else {}
        read = {"input": case["batch"] * case["channels"] * case["size"] ** 2, **weights}
    else:
        read = {"weights": narrow * 2 * case["features"]} if kind == "layer_norm" else {}
        read["input"] = (total - sum(read.values())) / 2
    return {**read, "result": total - sum(read.values())}


def _weight_bytes(case: Any) -> int:
    return int(case.get("weight_itemsize", case["itemsize"]))


def _narrow(case: Any) -> float:
    """Bytes of a weight over those of other elements."""
    return float(_weight_bytes(case) / case["itemsize"])


def _elements(case: Any, moved_bytes: float) -> float:
    """All elements of an operation that moves `moved_bytes`."""
    total = moved_bytes / case["itemsize"]
    return float(total + _parts(case, total).get("weights", 0) * (1 / _narrow(case) - 1))


def _of_weights(case: Any) -> str:
    return f"here a weight has {counted(_weight_bytes(case), 'byte')}, and any other element {case['itemsize']}"


def _places(case: Any, total: float) -> float:
    """Windows along one side of the output, of an operation that moves `total` elements."""
    images = case["batch"] * case.get("filters", case["channels"])
    return math.sqrt(_parts(case, total)["result"] / images)


def _windows(case: Any, total: float) -> list[float]:
    """Elements beyond the input itself when each window reads its own, per input pixel or per output pixel."""
    if "kernel" not in case:
        return []
    image, window = case["batch"] * case["channels"], case["kernel"] ** 2
    once = image * case["size"] ** 2
    return [(window - 1) * once, image * _places(case, total) ** 2 * window - once]


def _padding(case: Any) -> int:
    """Elements of the border around all images."""
    wide = case["size"] + 2 * case["padding"]
    return int(case["batch"] * case["channels"] * (wide**2 - case["size"] ** 2))


def _flop_mistake(case: Any, ratio: float, *, total: float) -> Wrong:
    kind = case["kind"]
    window = case.get("kernel", 1) ** 2
    places = _places(case, total) if "size" in case else 1.0
    grown = (case["size"] / places) ** 2 if "size" in case else 1.0
    one_more = (1 + 1 / places) ** 2 if "size" in case and left_over(case) else 1.0
    known = [
        (
            0.5,
            kind in _CONTRACTIONS,
            "your code counts a multiply-add as one operation",
            "how many operations are in a·b + c?",
        ),
        *_other_windows(case, places),
        (1 / case.get("batch", 1), True, "your code leaves out the batch", "count every example of the batch"),
        (
            grown,
            True,
            "your code puts a window on every input pixel",
            "how many windows fit, with this stride and padding?",
        ),
        (one_more, True, "your code puts a window where it does not fit", "round down: how many fit along a side?"),
        (
            1 / window,
            True,
            "your code leaves out the size of the window",
            "how many numbers does one output number depend on?",
        ),
        (
            1 / case.get("channels", 1),
            kind == "conv",
            "your filter reads only one channel",
            "let a filter read all channels",
        ),
        (
            1 - 1 / window,
            kind == "pool",
            "your code counts one operation too few per window",
            "count all places of the window, as the deck does: nine for 3×3",
        ),
    ]
    if kind == "linear" and close(ratio, 1 + 1 / (2 * case["inputs"]), rtol=1e-9):
        why = "your count has one more operation for each number of the result"
        return Wrong("your code counts a bias", why=why, next="count only the product: this layer has no bias")
    for factor, applies, what, then in known:
        if applies and factor != 1 and close(ratio, factor, rtol=1e-4):
            return Wrong(what, why=f"the FLOPs of this {kind} are {say(ratio)} times what they should be", next=then)
    return Wrong(
        f"the FLOPs of a {kind} are wrong",
        why=f"they are {say(ratio) if say(ratio) != '1' else f'{ratio:.9g}'} times what they should be",
        next="how many operations does one number of the result take, and how many numbers does the result have?",
    )


def _other_windows(case: Any, places: float) -> list[tuple[float, bool, str, str]]:
    """What the FLOPs differ by where another border was put around the image."""
    if not case.get("padding"):
        return []
    fits = [(case["size"] + border - case["kernel"]) // case["stride"] + 1 for border in (0, case["padding"])]
    none, one = ((count / places) ** 2 for count in fits)
    return [
        (none, True, "your code counts the windows without the padding", "add the padding around the image"),
        (
            one,
            True,
            "your code adds the padding on only one side",
            "add padding on both sides: left and right, top and bottom",
        ),
    ]


_ELEMENTS = "your code counts elements, not bytes"
_WIDE = "your code counts the weights with as many bytes as the other elements"
_ALL_NARROW = "your code counts the other elements with as few bytes as the weights"
_ONLY_THE_WEIGHTS = "use weight_itemsize only for the weights"
_FOUR = "your code counts 4 bytes for every element"
_ONCE = "your code leaves out the input or the result of a {}"
_PADDING = "your code counts the padding as input"
_AN_EXAMPLE = "your code reads the weights again for each example"
_AN_ELEMENT = "your code counts a weight and a bias for each element"
_WINDOWS = "your code reads the input once for every place of the window"


def _byte_mistake(case: Any, got: float, *, total: float) -> Wrong:
    parts, size = _parts(case, total), case["itemsize"]
    elements = _elements(case, total * size)
    same = _ONCE.format(case["kind"])
    forgotten = [name for name, count in parts.items() if close(got, (total - count) * size, rtol=1e-9)]
    left_out = f"your code leaves out the {' or the '.join(forgotten)}"
    once = forgotten == ["input", "result"]
    padded = bool(case.get("padding")) and close(got, (total + _padding(case)) * size, rtol=1e-9)
    windows = any(close(got, (total + more) * size, rtol=1e-9) for more in _windows(case, total))
    of_weights, narrow = _of_weights(case), _weight_bytes(case)
    weights_alone = narrow != size and close(got, elements * narrow, rtol=1e-9)
    weights = parts.get("weights", 0.0)
    again = weights * (case.get("batch", 1) - 1)
    an_example = bool(again) and close(got, (total + again) * size, rtol=1e-9)
    an_element = "features" in case and close(got, (total - weights + 2 * parts["input"]) * size, rtol=1e-9)
    known = [
        (close(got, elements, rtol=1e-9), _ELEMENTS, f"an element has {size} bytes here", "use itemsize"),
        (weights_alone, _ALL_NARROW, of_weights, _ONLY_THE_WEIGHTS),
        (close(got, elements * size, rtol=1e-9), _WIDE, of_weights, "use weight_itemsize where it is given"),
        (size != 4 and close(got, 4 * elements, rtol=1e-9), _FOUR, f"an element has {size} bytes here", "use itemsize"),
        (
            once,
            same,
            "the input and the result are both moved, and have the same number of elements",
            "add what is written to what is read",
        ),
        (
            bool(forgotten) and not once,
            left_out,
            "everything that is read or written is moved",
            "count the bytes of every operand that the exercise's table lists",
        ),
        (padded, _PADDING, "padding is not in memory, so it is not read", "count size × size, without the border"),
        (an_example, _AN_EXAMPLE, "one matrix product computes all examples", "count each operand once"),
        (
            "features" in case and close(got, (total - weights / 2) * size, rtol=1e-9),
            "your code leaves out the weights or the biases of the norm",
            "there is one weight and one bias for each feature",
            "count weights and biases",
        ),
        (
            an_element,
            _AN_ELEMENT,
            "each feature has one weight and one bias, however many rows there are",
            "count 2 × features",
        ),
        (
            windows,
            _WINDOWS,
            "one window can use what the previous one has brought into the caches",
            "count each operand once",
        ),
    ]
    found = [told for applies, *told in known if applies]
    if found:
        whats, whys, nexts = zip(*found, strict=True)
        return Wrong(", or ".join(whats), why="; ".join(whys), next=", or ".join(nexts))
    return Wrong(
        f"the bytes of a {case['kind']} are wrong",
        why=f"expected {total * size:.0f}, got {got:.0f}",
        next="count each operand as read once, and the result as written once; check the shape of each",
    )
