"""whole_graph: a function that a compiler gets in one graph, judged by what it gives and by how often it was split."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import math
from collections.abc import Iterator
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.units import counted

_SAME = 1e-4  # of the largest value: float32, in another order
_MOST_TEXT = 80  # characters of a line of code
# Why torch ended a graph, by a part of its reason; what is none of these is told in torch's words.
_KINDS = {"item": "item()", "list": "tolist()", "if": "jump", "print": "builtin"}
_PAIR = "y and the peak"
_BOTH = "compute both results, and select one of them with torch.where"


@exercise("whole_graph", trusting=True)
class WholeGraph(Exercise):
    """A function of `x` and `bound` that gives what a split one gives, in one graph.

    `whole_graph(x, bound)` returns `y` and the peak. Trusting: graphs are counted in the student's process.
    """

    answers = ("returned", "y", "peak")

    def probe(self, student: Any, given: Any) -> Any:
        inputs = self.student_inputs(given)
        answer = student.whole_graph(inputs["x"].clone(), inputs["bound"])
        answer = [*answer] if isinstance(answer, Iterator) else answer
        returned = _returned(answer, inputs["x"])
        if returned != _PAIR:
            return {"returned": returned, "y": [], "peak": 0.0, "graphs": 0, "breaks": []}
        y, peak = answer
        return {
            "returned": returned,
            "y": _listed(y),
            "peak": float(peak),
            **_split(inspect.unwrap(student.whole_graph), inputs),
        }

    def student_inputs(self, case: Any) -> Any:
        """What `whole_graph` is called with."""
        import torch

        return {"x": torch.tensor(case["x"], dtype=torch.float32), "bound": case["bound"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["returned"] != _PAIR:
            what = "your function did not return y and the peak"
            raise Wrong(what, why=f"it returned {got['returned']}", next="return y, peak")
        _judge_values(case, got, want)
        if got["graphs"] < 1:
            why = "torch._dynamo.explain counts 0 graphs"
            then = "write a function that Dynamo can compile to one graph"
            raise Wrong("no part of your function is compiled", why=why, next=then)
        if got["breaks"] or got["graphs"] > 1:
            raise _broken(got)

    def format_case(self, case: Any) -> str:
        """The numbers."""
        rows = "\n".join(f"  {row}" for row in case["x"])
        return f"bound {case['bound']}, x\n{rows}"

    def format_answer(self, case: Any, got: Any) -> str:
        """What came back, and in how many graphs."""
        if got["returned"] != _PAIR:
            return str(got["returned"])
        first = ", ".join(f"{value:.4f}" for value in got["y"][:4])
        return f"y starts with {first}; peak {got['peak']:.4f}; {counted(got['graphs'], 'graph')}"


def _returned(answer: Any, x: Any) -> str:
    """What came back, in words; `_PAIR` for a tensor of x's shape and one number."""
    if not isinstance(answer, (tuple, list)):
        return f"only a {type(answer).__name__}"
    if len(answer) != 2:
        return counted(len(answer), "value")
    shapes = [list(getattr(one, "shape", ())) for one in answer]
    if shapes == [[], list(x.shape)]:
        return "the peak first and y second"
    numbers = [math.prod(shape) for shape in shapes]
    if shapes[0] != list(x.shape) or numbers[1] != 1:
        return f"two values with the shapes {shapes[0]} and {shapes[1]}"
    return _PAIR


def _listed(y: Any) -> list[float]:
    return [float(value) for value in y.detach().double().flatten().tolist()]


def _split(function: Any, given: Any) -> dict[str, Any]:
    """How many graphs Dynamo makes of the function, and for each break its kind and the line."""
    import torch._dynamo

    torch._dynamo.reset()
    try:
        with _quiet():
            told = torch._dynamo.explain(function)(given["x"], given["bound"])
    finally:
        torch._dynamo.reset()
    return {"graphs": told.graph_count, "breaks": [[_kind(one.reason), _line(one)] for one in told.break_reasons]}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the function's prints, which come a second time, and torch's advice on breaks, which is ours to give."""
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)


def _kind(reason: str) -> str:
    first = reason.split("\n")[0]
    return next((kind for kind, text in _KINDS.items() if text in first), first[:_MOST_TEXT])


def _line(one: Any) -> str:
    return str(one.user_stack[-1].line or "")[:_MOST_TEXT] if one.user_stack else ""


def _judge_values(case: Any, got: Any, want: Any) -> None:
    if any(map(math.isnan, got["y"])):
        why = "y contains nan, but x does not"
        then = "0 * inf is nan: select one of two values with torch.where instead of multiplying one of them by 0"
        raise Wrong("in your function, a value that should be ignored still affects the result", why=why, next=then)
    if not _alike([got["peak"]], [want["peak"]]):
        why = f"got {got['peak']:g}, but the largest absolute value of x is {want['peak']:g}"
        largest = max(value for row in case["x"] for value in row)
        if _alike([got["peak"]], [largest]) and not _alike([got["peak"]], [max(map(abs, got["y"]))]):
            then = "take the absolute values first, because a value below 0 can be the one that is furthest from 0"
            raise Wrong("your peak is the largest value of x, not the largest absolute value", why=why, next=then)
        then = "compute the peak from the original x, before anything is scaled"
        raise Wrong("your peak is not that of the original x", why=why, next=then)
    if not _alike(got["y"], want["y"]):
        raise _other_values(case, got["y"], want["peak"])


def _alike(one: list[float], other: list[float]) -> bool:
    within = _SAME * max(map(abs, other), default=0.0)
    return len(one) == len(other) and all(abs(a - b) <= within for a, b in zip(one, other, strict=True))


def _other_values(case: Any, mine: list[float], peak: float) -> Wrong:
    """The slip that gives the values that came."""
    plain = [value for row in case["x"] for value in row]
    scaled = [value * case["bound"] / peak for value in plain] if peak else plain
    inner = scaled if peak > case["bound"] else plain
    if _alike(mine, _either(plain)):
        why, then = (
            f"the peak is {peak:g}, and the bound is {case['bound']:g}",
            "scale x if the peak is above the bound",
        )
        return Wrong("your function does not scale x down when its peak is above the bound", why=why, next=then)
    if _alike(mine, _either(scaled)):
        why = f"the peak is {peak:g}, and the bound is {case['bound']:g}"
        then = "leave x unchanged if its peak is below the bound"
        return Wrong("your function scales x up when its peak is below the bound", why=why, next=then)
    why = f"the sum that decides the branch is {math.fsum(inner):g}"
    if _alike(mine, _positive(inner)) and not math.fsum(inner):
        then = "compare the sum with 0 as three_pieces does"
        return Wrong("in your function, a sum of exactly 0 takes the wrong branch", why=why, next=then)
    if _alike(mine, _positive(inner)):
        return Wrong("your function lacks the branch for sums of at most 0", why=why, next=_BOTH)
    if _alike(mine, _centred(inner)):
        return Wrong("your function lacks the branch for sums above 0", why=why, next=_BOTH)
    if not any(mine):
        then = "leave x unchanged if it does not have to be scaled"
        return Wrong("your y is 0 everywhere: all of x is lost", why=why, next=then)
    plain_mean = math.fsum(plain) / len(plain)
    if _alike(mine, [value - plain_mean for value in inner]):
        then = "take the mean of the scaled x"
        return Wrong("your function takes the mean before it scales x", why=why, next=then)
    if _alike(mine, _either([value for row in case["x"] for value in _within(row, case["bound"])])):
        return Wrong(
            "your function scales each row by the peak of that row", why=why, next="use a single peak for all of x"
        )
    then = "compare your result with three_pieces(x, bound) on the inputs that case(...) returns"
    return Wrong("your y has wrong values", why=why, next=then)


def _within(row: list[float], bound: float) -> list[float]:
    """A row scaled until its largest absolute value is the bound, where it is above."""
    peak = max(map(abs, row))
    return [value * bound / peak for value in row] if peak > bound else row


def _either(values: list[float]) -> list[float]:
    return _positive(values) if math.fsum(values) > 0 else _centred(values)


def _positive(values: list[float]) -> list[float]:
    return [max(0.0, value) for value in values]


def _centred(values: list[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _broken(got: Any) -> Wrong:
    """What the first break is told as."""
    kind, line = got["breaks"][0] if got["breaks"] else ("", "")
    why = f"the function runs in {counted(got['graphs'], 'graph')}; the first ends at `{line}`"
    if kind in ("item", "list"):
        then = "keep the number as a tensor: a 0-d tensor can be compared, divided and returned"
        return Wrong("your function reads a number from the device before the graph has finished", why=why, next=then)
    if kind == "if":
        then = "compute both results, and let torch.where select one on the device"
        return Wrong("in your function, an `if` depends on the value of a tensor", why=why, next=then)
    if kind == "print":
        then = "return the value to be shown, and let the caller print it"
        return Wrong("in your function, a call to a plain Python function ends the graph", why=why, next=then)
    then = "call torch._dynamo.explain to see the reason"
    return Wrong("in your code, the graph ends before the function does", why=f"{why}: {kind}", next=then)
