"""The largest sum of block values that are still needed equals a search through all that may be executed next."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from edl_labs.virtual.tiles import evaluate, parse_kernels
from tests.sampling import few

LANES, TRIPS = 16, 3
ITEM_BYTES = {"float32": 4, "float16": 2}
NAMES = ("a", "b", "c", "d", "e")  # few, so that each of them gets one value after the other
# What an operation names its result, "" for none, and which names it uses.
Step = tuple[str, tuple[str, ...]]


class DrawnLife:
    """A kernel whose names get new values again and again, in loops too, and its operations."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines = [f"    at = tl.arange(0, {LANES})"]
        self.sizes = {"at": 4 * LANES}
        self.kinds: dict[str, str] = {}
        self.parts: list[tuple[bool, list[Step]]] = [(False, [("at", ())])]
        for name in NAMES[:3]:
            self.kinds[name] = self.rng.choice([*ITEM_BYTES])
            self.add([("load", name, name, name)])
        for _ in range(self.rng.randint(2, 5)):
            if self.rng.random() < 0.4:
                self.add([self.statement(NAMES[:3]) for _ in range(self.rng.randint(1, 5))], loop=True)
            else:
                self.add([self.statement(NAMES)])
        self.add([("store", name, name, name) for name in self.kinds if self.rng.random() < 0.7])

    def statement(self, names: tuple[str, ...]) -> tuple[str, str, str, str]:
        """A word, the name of its result, and two names that it may use: of the result's type, which names keep."""
        name = self.rng.choice(names)
        word = self.rng.choice(["load", "add", "add", "scale", "choose", "square", "store"])
        if name not in self.kinds:
            self.kinds[name], word = self.rng.choice([*ITEM_BYTES]), "load"
        alike = [one for one, kind in self.kinds.items() if kind == self.kinds[name]]
        return word, name, self.rng.choice(alike), self.rng.choice(alike)

    def add(self, statements: list[tuple[str, str, str, str]], *, loop: bool = False) -> None:
        steps = []
        if loop:
            self.lines.append("    for i in range(n):")
        for word, name, one, other in statements:
            between = f"t{len(self.sizes)}"
            x, y = ("x", "y") if self.kinds[name] == "float32" else ("h", "g")
            self.sizes[name] = LANES * ITEM_BYTES[self.kinds[name]]
            # Masks, pointers and scalars are none of the values that are counted.
            self.sizes[between] = LANES * self.sizes[name] if word == "square" else 0
            text, more = {
                "load": (
                    f"{name} = tl.load({x} + at, mask=at < n, other=0)",
                    [(between, ("at",)), (name, ("at", between))],
                ),
                "add": (f"{name} = {one} + {other}", [(name, (one, other))]),
                "scale": (f"{name} = {one} * n.to(tl.float16)", [(name, (one,))]),
                "choose": (
                    f"{name} = tl.where({one} > {other}, {one}, {other})",
                    [(between, (one, other)), (name, (between, one, other))],
                ),
                "square": (
                    f"{name} = tl.sum({one}[:, None] + {other}[None, :], axis=0)",
                    [(between, (one, other)), (name, (between,))],
                ),
                "store": (f"tl.store({y} + at, {name})", [("", ("at", name))]),
            }[word]  # fmt: skip
            self.lines.append(f"{'    ' * (1 + loop)}{text}")
            steps += more
        self.parts.append((loop, steps))

    @property
    def source(self) -> str:
        return "@jit\ndef f(x, h, y, g, n):\n" + "\n".join(self.lines) + "\n"

    def next_steps(self, part: int, step: int) -> Iterator[list[Step]]:
        """All that may be executed behind a step: each loop ends after none, one or two further iterations."""
        rest = self.parts[part][1][step + 1 :]
        here = [self.parts[part][1] * again for again in range(3)] if self.parts[part][0] else [[]]
        behind = [[steps * again for again in range(3)] if loop else [steps] for loop, steps in self.parts[part + 1 :]]
        for several in product(here, *behind):
            yield rest + [one for steps in several for one in steps]

    def live_bytes(self) -> int:
        """After each operation, the bytes of the names that some continuation uses; the largest of these sums."""
        places = [(part, step) for part, (_, steps) in enumerate(self.parts) for step in range(len(steps))]
        return max(
            sum(self.sizes[name] for name in set().union(*map(used_first, self.next_steps(*place)))) for place in places
        )


def used_first(steps: list[Step]) -> set[str]:
    """Names that are used before they get another value."""
    used, gone = set[str](), set[str]()
    for name, uses in steps:
        used.update(one for one in uses if one not in gone)
        gone.add(name)
    return used


@pytest.mark.parametrize("seed", few(range(300), quick=60))
def test_live_bytes(seed: int) -> None:
    drawn = DrawnLife(seed)
    tensors = {name: np.zeros(64, np.float16 if name in "hg" else np.float32) for name in "xhyg"}

    record = evaluate(parse_kernels(drawn.source), "f", (2,), {**tensors, "n": TRIPS})

    assert drawn.live_bytes() == record.live_bytes, drawn.source


def test_most_kernels_have_a_loop() -> None:
    assert sum("for i in" in DrawnLife(seed).source for seed in range(300)) >= 200
