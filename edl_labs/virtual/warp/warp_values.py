"""Values of a replay: where each comes from, as an expression of the arrays' first elements, and its number.

An origin is ("src", 7) for element 7 of src as it was in the beginning, ("constant", 2.0), or an operation of two
origins, ("+", first, second). Equal origins are kept once, and are numbers inside.
"""

from __future__ import annotations

import operator
from collections import Counter
from hashlib import sha256
from heapq import heappop, heappush
from typing import Any, NamedTuple

_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class Cell(NamedTuple):
    """What an element or a register holds: the number of its origin, and a number of the array's dtype."""

    origin: int
    number: Any


class Origins:
    """All origins of a replay, each once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._nodes: list[tuple[Any, ...]] = []
        self._depths: list[int] = []
        self._digests: list[str] = []

    def leaf(self, array: str, place: int) -> int:
        """Element `place` of an array, as it was in the beginning."""
        return self._of((array, place))

    def constant(self, value: float) -> int:
        """A number of the kernel's text."""
        return self._of(("constant", value))

    def operation(self, op: str, first: int, second: int) -> int:
        """What an operation made of two others."""
        return self._of((op, first, second))

    def node(self, number: int) -> tuple[Any, ...]:
        """An origin: a leaf (array, place), or (op, first, second) with the numbers of two others."""
        return self._nodes[number]

    def leaves(self, number: int) -> Counter[tuple[str, Any]]:
        """How often each leaf comes into a sum: those of a difference count negatively, those of products once each."""
        found: Counter[tuple[str, Any]] = Counter()
        times, todo = Counter({number: 1}), [-number]
        while todo:  # what an operation is made of has lower numbers: each is met when all its uses are counted
            at = -heappop(todo)
            node, count = self._nodes[at], times.pop(at)
            if len(node) == 2:
                found[node] += count
                continue
            for part, sign in ((node[1], 1), (node[2], -1 if node[0] == "-" else 1)):
                if part not in times:
                    heappush(todo, -part)
                times[part] += sign * count
        return found

    def depth(self, number: int) -> int:
        """The operations of the longest chain, each of which waits for the one before."""
        return self._depths[number]

    def shape_of(self, number: int) -> str:
        """A digest that two origins share where the same operations, in the same order, make them of the same leaves.

        a + b and b + a are the same: rounding does not tell them apart.
        """
        for at in range(len(self._digests), number + 1):
            node = self._nodes[at]
            parts: list[Any] = [self._digests[part] for part in node[1:]] if len(node) == 3 else [node[1]]
            if node[0] in ("+", "*"):
                parts.sort()
            self._digests.append(sha256(repr((node[0], *parts)).encode()).hexdigest())
        return self._digests[number]

    def operations(self, number: int) -> set[str]:
        """The names of the operations that it is made by."""
        seen, todo, names = {number}, [number], set()
        while todo:
            node = self._nodes[todo.pop()]
            if len(node) == 3:
                names.add(node[0])
                fresh = {node[1], node[2]} - seen
                seen |= fresh
                todo += fresh
        return names

    def _of(self, node: tuple[Any, ...]) -> int:
        # 0.0 and -0.0 are equal, and NaN is not itself: text tells constants apart.
        key = (node[0], repr(node[1])) if node[0] == "constant" else node
        if key not in self._numbers:
            self._numbers[key] = len(self._nodes)
            self._nodes.append(node)
            self._depths.append(1 + max(self._depths[part] for part in node[1:]) if len(node) == 3 else 0)
        return self._numbers[key]


def initial(origins: Origins, array: str, place: int, dtype: str, given: Any) -> Cell:
    """What an element holds before any launch: what was given, or its own number."""
    import numpy as np

    number = place if given is None else np.asarray(given).reshape(-1)[place]
    return Cell(origins.leaf(array, place), _of_dtype(number, dtype))


def stored(cell: Cell, dtype: str) -> Cell:
    """The cell as an array of this dtype keeps it: its number is rounded."""
    return Cell(cell.origin, _of_dtype(cell.number, dtype))


def computed(origins: Origins, op: str, first: Cell, second: Cell) -> Cell:
    """An operation, in the precision of its operands: float32 and float32 give float32."""
    import numpy as np

    with np.errstate(all="ignore"):
        try:
            number = _OPERATORS[op](first.number, second.number)
        except ZeroDivisionError:
            number = float("nan")
    return Cell(origins.operation(op, first.origin, second.origin), number)


def _of_dtype(number: Any, dtype: str) -> Any:
    import numpy as np

    # Vectors are copied as wholes: their number stands for all their parts.
    kind = getattr(np, {"float2": "float64", "float4": "float64"}.get(dtype, dtype))
    if type(number) is kind:
        return number
    with np.errstate(all="ignore"):
        return np.asarray(number).astype(kind)[()]
