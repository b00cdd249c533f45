"""intensity: the operations and the bytes of single operations, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import say, two_numbers

_CONTRACTIONS = ("gemm", "matvec", "linear", "conv")


@exercise("intensity")
class Intensity:
    """FLOPs and bytes of deck [002]'s operations, from their shapes.

    `student.work_of(op)` gives `(flop, moved_bytes)` of one operation.
    """

    loose = True  # `two_numbers` names what is asked for

    def cases(self, rng: Any) -> list[Any]:
        deck = [
            {"kind": "linear", "batch": 512, "inputs": 1024, "outputs": 4096, "itemsize": 2},
            {"kind": "linear", "batch": 1, "inputs": 1024, "outputs": 4096, "itemsize": 2},
            {"kind": "gemm", "m": 8192, "n": 128, "k": 8192, "itemsize": 2},
            {"kind": "matvec", "m": 1024, "n": 512, "itemsize": 4},
        ]
        # Two of each kind, with elements of two sizes; windows of the first leave pixels over and lie on padding.
        sizes = {kind: rng.permutation([1, 2, 4, 8])[:2].tolist() for kind in OPERATIONS}
        first = [_operation(rng, kind, sizes[kind][0], window=_ragged_window) for kind in OPERATIONS]
        return [*deck, *first, *(_operation(rng, kind, sizes[kind][1], window=_window) for kind in OPERATIONS)]

    def probe(self, student: Any, case: Any) -> Any:
        return student.work_of(dict(case))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        two_numbers(got, "flop, moved_bytes")
        if close(got[0], want[1], rtol=1e-9) and close(got[1], want[0], rtol=1e-9):
            raise Wrong("the two answers are swapped", why="FLOPs come first", next="return flop, moved_bytes")
        if not close(got[0], want[0], rtol=1e-9):
            raise _flop_mistake(case, got[0] / want[0])
        if not close(got[1], want[1], rtol=1e-9):
            raise _byte_mistake(case, got[1])

    def show(self, case: Any) -> str:
        return f"{case['kind']}: " + ", ".join(f"{name} {value}" for name, value in case.items() if name != "kind")


def _operation(rng: Any, kind: str, itemsize: int, *, window: Callable[[Any], dict[str, int]]) -> dict[str, Any]:
    """An operation of `kind` with sizes of its own."""
    slides = window(rng) if kind in ("conv", "pool") else {}
    return {"kind": kind, **OPERATIONS[kind](rng), **slides, "itemsize": itemsize}


def _whole(rng: Any, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def _window(rng: Any) -> dict[str, int]:
    kernel, stride = int(rng.choice([2, 3, 5, 7])), int(rng.choice([1, 2, 2, 3]))
    padding = _whole(rng, 0, kernel // 2 + 1)
    return {"size": _whole(rng, 14, 120), "kernel": kernel, "stride": stride, "padding": padding}


def _ragged_window(rng: Any) -> dict[str, int]:
    """A window whose last step would leave the image, and that fits once more along a side for its padding."""
    while True:
        case = _window(rng)
        if 0 < _left_over(case) < case["padding"]:
            return case


def _left_over(case: Any) -> int:
    """Pixels beyond the last window."""
    return int((case["size"] + 2 * case["padding"] - case["kernel"]) % case["stride"])


OPERATIONS: dict[str, Any] = {
    "gemm": lambda rng: {name: _whole(rng, 16, 5000) for name in ("m", "n", "k")},
    "matvec": lambda rng: {name: _whole(rng, 16, 5000) for name in ("m", "n")},
    "linear": lambda rng: {name: _whole(rng, 2, 5000) for name in ("batch", "inputs", "outputs")},
    "conv": lambda rng: {
        "batch": _whole(rng, 2, 65),
        "channels": _whole(rng, 3, 300),
        "filters": _whole(rng, 8, 300),
    },
    "pool": lambda rng: {"batch": _whole(rng, 2, 65), "channels": _whole(rng, 3, 300)},
    "relu": lambda rng: {"elements": _whole(rng, 1000, 10_000_000)},
    "layer_norm": lambda rng: {"rows": _whole(rng, 8, 9000), "features": _whole(rng, 64, 5000)},
}


def _places(case: Any) -> int:
    """Windows along one side of the output."""
    room = case["size"] + 2 * case["padding"] - case["kernel"]
    return room // case["stride"] + 1


def _parts(case: Any) -> dict[str, float]:
    """Elements of each operand: what an answer that leaves one out, or reads one twice, differs by."""
    kind = case["kind"]
    if kind == "gemm":
        return {"A": case["m"] * case["k"], "B": case["k"] * case["n"], "result": case["m"] * case["n"]}
    if kind == "matvec":
        return {"matrix": case["m"] * case["n"], "vector": case["n"], "result": case["m"]}
    if kind == "linear":
        into, out = case["inputs"], case["outputs"]
        return {"input": case["batch"] * into, "weights": into * out, "result": case["batch"] * out}
    if kind in ("conv", "pool"):
        image = case["batch"] * case["channels"]
        result = {"input": image * case["size"] ** 2}
        if kind == "pool":
            return result | {"result": image * _places(case) ** 2}
        taps = case["channels"] * case["kernel"] ** 2
        return result | {
            "weights": case["filters"] * taps,
            "result": case["batch"] * case["filters"] * _places(case) ** 2,
        }
    elements = case["elements"] if kind == "relu" else case["rows"] * case["features"]
    scale = {"weights": 2 * case["features"]} if kind == "layer_norm" else {}
    return {"input": elements, "result": elements, **scale}


def _windows(case: Any) -> list[float]:
    """Elements beyond the input itself when each window reads its own, per input pixel or per output pixel."""
    if "kernel" not in case:
        return []
    image, window = case["batch"] * case["channels"], case["kernel"] ** 2
    once = image * case["size"] ** 2
    return [(window - 1) * once, image * _places(case) ** 2 * window - once]


def _padding(case: Any) -> int:
    """Elements of the border around all images."""
    wide = case["size"] + 2 * case["padding"]
    return int(case["batch"] * case["channels"] * (wide**2 - case["size"] ** 2))


def _flop_mistake(case: Any, ratio: float) -> Wrong:
    kind = case["kind"]
    window = case.get("kernel", 1) ** 2
    grown = (case["size"] / _places(case)) ** 2 if "size" in case else 1.0
    one_more = (1 + 1 / _places(case)) ** 2 if "size" in case and _left_over(case) else 1.0
    known = [
        (0.5, kind in _CONTRACTIONS, "a multiply-add was counted as one operation", "a·b + c: how many operations?"),
        (1 / case.get("batch", 1), True, "the batch was left out", "every example of the batch is computed"),
        (grown, True, "a window was put on every input pixel", "how many windows fit, with this stride and padding?"),
        (one_more, True, "a window was put where there is no room for it", "round down: what fits along a side?"),
        (1 / window, True, "the window was left out", "how many numbers go into one output number?"),
        (1 / case.get("channels", 1), kind == "conv", "a filter looked at one channel", "it looks at all of them"),
        (
            1 - 1 / window,
            kind == "pool",
            "the first place of the window was left out",
            "the deck counts all nine of 3×3",
        ),
    ]
    for factor, applies, what, then in known:
        if applies and factor != 1 and close(ratio, factor, rtol=1e-4):
            return Wrong(what, why=f"the FLOPs of this {kind} are {say(ratio)} of what they should be", next=then)
    return Wrong(
        f"the FLOPs of a {kind} are wrong",
        why=f"they are {say(ratio)} times what they should be",
        next="how many operations make one number of the result, and how many numbers has it?",
    )


def _byte_mistake(case: Any, got: float) -> Wrong:
    parts, size = _parts(case), case["itemsize"]
    total = sum(parts.values())
    if close(got, total, rtol=1e-9):
        return Wrong("elements were counted, not bytes", why=f"an element has {size} bytes here", next="use itemsize")
    if close(got, 4 * total, rtol=1e-9):
        return Wrong("every element was given 4 bytes", why=f"it has {size} here", next="use itemsize")
    forgotten = [name for name, count in parts.items() if close(got, (total - count) * size, rtol=1e-9)]
    if forgotten:
        what = f"the {' or the '.join(forgotten)} was left out"
        return Wrong(what, why="all that is read and all that is written moves", next="list each operand of the table")
    if case.get("padding") and close(got, (total + _padding(case)) * size, rtol=1e-9):
        why = "the padding is not in memory, so nobody reads it"
        return Wrong("the padding was counted as input", why=why, next="the input is size × size, without its border")
    if any(close(got, (total + more) * size, rtol=1e-9) for more in _windows(case)):
        why = "windows overlap: what one has brought into the caches, the next can use"
        return Wrong("the input was read once for every place of the window", why=why, next="count each operand once")
    return Wrong(
        f"the bytes of a {case['kind']} are wrong",
        why=f"they are {say(got / (total * size))} times what they should be",
        next="each operand is read once, the result is written once; mind the shape of each",
    )
