"""Kernels drawn at random, whose values are small integers: every sum is exact, so results are equal bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

PROGRAMS = 3
_ELEMENTS = 256  # of each input
_EXACT = {"float32": 2**22, "float16": 2**10, "int32": 2**28, "int16": 2**14, "int8": 2**6}
# Integers up to here are exact. Triton's interpreter computes with the bits of a bfloat16, so it only stores them here.
_NARROW = {"bfloat16": 128, "float8e5": 8, "float8e4nv": 16}
_BINS = 16  # of the counts that all programs share


@dataclass(frozen=True)
class Name:
    """A block of the drawn kernel: its type, its shape, and what its absolute values do not exceed."""

    name: str
    kind: str
    shape: tuple[int, ...]
    bound: int


class DrawnKernel:
    """Statements, one after the other, and stores of all that they made."""

    def __init__(self, seed: int, statements: int = 14) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = ["pid = tl.program_id(0)"]
        self.names: list[Name] = []
        for _ in range(4):
            self.load()
        for _ in range(statements):
            self.pick([self.load, self.arithmetic, self.arithmetic, self.integers, self.choose, self.reduce, self.view,
                       self.convert, self.loop, self.branch, self.product, self.scan, self.halve,
                       self.narrow, self.meet, self.count, self.repeat, self.unroll,
                       self.one_number, self.indices])()  # fmt: skip
        self.outputs = self.store()

    def pick(self, values: list[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def new(self, text: str, kind: str, shape: tuple[int, ...], bound: int, indent: str = "") -> Name:
        one = Name(f"v{len(self.names)}", kind, shape, bound)
        self.lines.append(f"{indent}{one.name} = {text}")
        self.names.append(one)
        return one

    def some(self, *, kinds: tuple[str, ...] = ("float32", "float16", "int32"), rank: int | None = None) -> Name | None:
        fitting = [one for one in self.names if one.kind in kinds and (rank is None or len(one.shape) == rank)]
        return self.pick(fitting) if fitting else None

    def load(self) -> None:
        pointer, kind = self.pick(
            [("x_ptr", "float32"), ("h_ptr", "float16"), ("i_ptr", "int32"), ("b_ptr", "int8"), ("x_ptr", "float32")]
        )
        shape = self.pick([(8,), (16,), (4, 8), (16, 16), (8, 4)])
        at = f"tl.arange(0, {shape[0]})" if len(shape) == 1 else (
            f"(tl.arange(0, {shape[0]})[:, None] * {shape[1]} + tl.arange(0, {shape[1]})[None, :])"
        )  # fmt: skip
        offset = f"{at} + pid * {int(self.rng.integers(8))}"
        mask = self.pick(
            ["", f", mask={offset} < {int(self.rng.integers(4, 200))}, other={int(self.rng.integers(-3, 4))}"]
        )
        self.new(f"tl.load({pointer} + {offset}{mask})", kind, shape, 4)

    def fits(self, kind: str, bound: int) -> bool:
        return bound <= _EXACT[kind]

    def pair(self, kinds: tuple[str, ...]) -> tuple[Name, str, tuple[int, ...], int] | None:
        a = self.some(kinds=kinds)
        if a is None:
            return None
        others = [one for one in self.names if one.kind == a.kind and one.shape in (a.shape, ())]
        b = self.pick([*others, None])
        if b is None:
            number = int(self.rng.integers(1, 4))
            return a, str(number), a.shape, number
        return a, b.name, a.shape, b.bound

    def arithmetic(self) -> None:
        found = self.pair(tuple(_EXACT))
        if found is None:
            return
        a, b, shape, bound = found
        op = self.pick(["+", "-", "*", "tl.maximum", "tl.minimum"])
        result = a.bound * bound if op == "*" else a.bound + bound
        if self.fits(a.kind, result):
            text = f"{op}({a.name}, {b})" if op.startswith("tl") else f"{a.name} {op} {b}"
            self.new(text, a.kind, shape, result)

    def integers(self) -> None:
        a = self.some(kinds=("int32",))
        if a is None:
            return
        op, number = self.pick([("//", 3), ("%", 5), ("&", 6), ("|", 9), ("^", 5), ("<<", 2), (">>", 1)])
        if self.fits("int32", 4 * a.bound + 16):
            self.new(f"{a.name} {op} {number}", "int32", a.shape, 4 * a.bound + 16)

    def halve(self) -> None:
        a = self.some(kinds=("float32",))
        if a is not None and a.bound < 2**12:
            self.new(f"({a.name} / 2).to(tl.int32)", "int32", a.shape, a.bound)

    def choose(self) -> None:
        found = self.pair(("float32", "float16", "int32"))
        if found is not None:
            a, b, shape, bound = found
            op = self.pick(["<", "<=", "==", "!=", ">", ">="])
            mask = self.pick([f"{a.name} {op} {b}", f"({a.name} {op} 0) & ({a.name} > -3)", f"~({a.name} {op} 1)"])
            self.new(f"tl.where({mask}, {a.name}, {b})", a.kind, shape, max(a.bound, bound))

    def reduce(self) -> None:
        a = self.some()
        if a is None or not a.shape:
            return
        axis = int(self.rng.integers(len(a.shape)))
        shape = tuple(extent for at, extent in enumerate(a.shape) if at != axis)
        name = self.pick(["sum", "max", "min", "argmax", "argmin"])
        bound = {"sum": a.bound * a.shape[axis], "argmax": 16, "argmin": 16}.get(name, a.bound)
        kind = "int32" if name.startswith("arg") else a.kind if name == "sum" else a.kind.replace("16", "32")
        if self.fits(a.kind, bound):
            self.new(f"tl.{name}({a.name}, axis={axis})", kind, shape, bound)

    def scan(self) -> None:
        a = self.some(kinds=("float32", "int32"))
        if a is not None and a.shape and self.fits(a.kind, a.bound * max(a.shape)):
            axis = int(self.rng.integers(len(a.shape)))
            self.new(f"tl.cumsum({a.name}, {axis})", a.kind, a.shape, a.bound * max(a.shape))

    def view(self) -> None:
        a = self.some(rank=2)
        if a is not None:
            rows, columns = a.shape
            text, shape = self.pick([
                (f"tl.trans({a.name})", (columns, rows)),
                (f"tl.reshape({a.name}, ({rows * columns},))", (rows * columns,)),
                (f"tl.reshape({a.name}, ({columns}, {rows}))", (columns, rows)),
                (f"tl.permute({a.name}, (1, 0))", (columns, rows)),
                (f"{a.name} + tl.sum({a.name}, axis=1)[:, None] * 0", (rows, columns)),
            ])  # fmt: skip
            self.new(text, a.kind, shape, a.bound)

    def convert(self) -> None:
        a, kind = self.some(kinds=tuple(_EXACT)), self.pick([*_EXACT])
        if a is not None and self.fits(kind, a.bound):
            self.new(f"{a.name}.to(tl.{kind})", kind, a.shape, a.bound)

    def loop(self) -> None:
        a = self.some(kinds=("float32", "int32"))
        if a is None or not a.shape or not self.fits(a.kind, 40 * a.bound):
            return
        start = self.new(f"{a.name} * 0", a.kind, a.shape, 0)
        low, step = int(self.rng.integers(2)), int(self.rng.integers(1, 3))
        head = self.pick([f"for k in range({low}, pid + 3, {step}):", f"for k in range({low}, 4, {step}):"])
        self.lines += [head, f"    {start.name} += {a.name} * k"]
        if self.rng.integers(2):
            self.lines += ["    if k > pid:", f"        {start.name} -= {a.name}"]
        self.new(f"{start.name} + 0", a.kind, a.shape, 40 * a.bound)
        self.names[self.names.index(start)] = Name(start.name, a.kind, a.shape, 40 * a.bound)

    def branch(self) -> None:
        a = self.some()
        if a is not None and self.fits(a.kind, 2 * a.bound + 1):
            one = self.new(f"{a.name} + 0", a.kind, a.shape, 2 * a.bound + 1)
            test = self.pick(["pid == 1", "pid > 0", "pid % 2 == 0", "pid >= 0"])
            self.lines += [f"if {test}:", f"    {one.name} = {one.name} + 1", "else:", f"    {one.name} = -{one.name}"]

    def narrow(self) -> None:
        """Through fewer bits and back."""
        a, kind = self.some(kinds=("float32", "float16")), self.pick([*_NARROW])
        if a is not None and a.bound <= _NARROW[kind]:
            self.new(f"{a.name}.to(tl.{kind}).to(tl.float32)", "float32", a.shape, a.bound)

    def meet(self) -> None:
        """join, split, interleave and new dimensions."""
        found = self.pair(("float32", "float16", "int32"))
        if found is None or not found[0].shape or found[1].isdigit() or len(found[0].shape) > 1:
            return
        a, b, (size,), bound = found
        if not any(one.name == b and one.shape == a.shape for one in self.names):
            return
        kind = self.pick(["join", "split", "interleave", "outer", "broadcast"])
        if kind == "split":
            first = self.new(f"{a.name} + 0", a.kind, a.shape, a.bound)
            other = self.new(f"{b} + 0", a.kind, a.shape, bound)
            self.lines.append(f"{other.name}, {first.name} = tl.split(tl.join({first.name}, {other.name}))")
            self.names[self.names.index(first)] = Name(first.name, a.kind, a.shape, max(a.bound, bound))
            self.names[self.names.index(other)] = Name(other.name, a.kind, a.shape, max(a.bound, bound))
        elif kind == "outer" and size * size <= 256 and self.fits(a.kind, a.bound * bound):
            self.new(f"{a.name}[:, None] * {b}[None, :]", a.kind, (size, size), a.bound * bound)
        elif kind == "broadcast":
            self.new(f"tl.broadcast_to(tl.expand_dims({a.name}, 0), (4, {size}))", a.kind, (4, size), a.bound)
        elif kind in ("join", "interleave") and size <= 64:
            shape = (size, 2) if kind == "join" else (2 * size,)
            self.new(f"tl.{kind}({a.name}, {b})", a.kind, shape, max(a.bound, bound))

    def count(self) -> None:
        """A histogram, and counts that all programs add to."""
        a = self.some(kinds=("int32",))
        if a is None or not a.shape:
            return
        if len(a.shape) == 1 and self.rng.integers(2):
            self.new(f"tl.histogram({a.name} & {_BINS - 1}, {_BINS})", "int32", (_BINS,), a.shape[0])
        else:
            kind = self.pick(["add", "max", "min"])
            masked = self.pick(["", f", mask={a.name} > 0"])
            place = _BINS * ["add", "max", "min"].index(kind)
            self.lines.append(f"tl.atomic_{kind}(c_ptr + {place} + ({a.name} & {_BINS - 1}), {a.name}{masked})")

    def repeat(self) -> None:
        """A `while` whose number of turns depends on the program."""
        a = self.some(kinds=("float32", "int32"))
        if a is None or not self.fits(a.kind, 8 * a.bound):
            return
        one = self.new(f"{a.name} + 0", a.kind, a.shape, 8 * a.bound)
        turn = f"t{len(self.names)}"
        self.lines += [f"{turn} = pid", f"while {turn} < {int(self.rng.integers(1, 5))}:"]
        self.lines += [f"    {one.name} += {a.name}", f"    {turn} += {int(self.rng.integers(1, 3))}"]

    def unroll(self) -> None:
        """A loop that is copied, with a constant in it."""
        a = self.some(kinds=("float32", "int32"))
        if a is None or not self.fits(a.kind, 8 * a.bound):
            return
        one = self.new(f"{a.name} + 0", a.kind, a.shape, 8 * a.bound)
        self.lines += ["for k in tl.static_range(4):", "    if k % 2 == 0:", f"        {one.name} += {a.name} * k"]

    def one_number(self) -> None:
        """abs, clamp and a choice between two values."""
        a = self.some(kinds=("float32", "int32"))
        if a is not None:
            text = self.pick([f"tl.abs({a.name})", f"tl.maximum(tl.minimum({a.name}, 3), -2)", f"-{a.name}"])
            self.new(text, a.kind, a.shape, max(3, a.bound))

    def indices(self) -> None:
        """The largest value together with its place."""
        a = self.some(kinds=("float32", "int32"), rank=1)
        if a is not None:
            top, place = f"v{len(self.names)}", f"v{len(self.names) + 1}"
            self.lines.append(f"{top}, {place} = tl.max({a.name}, axis=0, return_indices=True)")
            self.names += [Name(top, a.kind, (), a.bound), Name(place, "int32", (), a.shape[0])]

    def product(self) -> None:
        blocks = [one for one in self.names if one.shape == (16, 16) and one.kind in ("float32", "float16")]
        if not blocks:
            return
        a, b = self.pick(blocks), self.pick(blocks)
        bound = 16 * a.bound * b.bound
        if a.kind == b.kind and self.fits("float32", bound):
            self.new(f'tl.dot({a.name}, {b.name}, input_precision="ieee")', "float32", (16, 16), bound)

    def store(self) -> int:
        """Stores of all values, each to a place of its own; how many elements a program writes."""
        place = 0
        for one in self.names:
            count = int(np.prod(one.shape, dtype=int))
            flat = one.name if len(one.shape) < 2 else f"tl.reshape({one.name}, ({count},))"
            at = f" + tl.arange(0, {count})" if one.shape else ""
            self.lines.append(f"tl.store(y_ptr + pid * size + {place}{at}, {flat}.to(tl.float32))")
            place += count
        return place

    @property
    def source(self) -> str:
        """The kernel's text."""
        return "@triton.jit\ndef kernel(x_ptr, h_ptr, i_ptr, b_ptr, c_ptr, y_ptr, size):\n" + "\n".join(
            f"    {line}" for line in self.lines
        )

    def arguments(self) -> dict[str, Any]:
        """Inputs of small integers, and the output."""
        draw = self.rng.integers(-4, 5, (4, _ELEMENTS + 32))
        kinds = (("x_ptr", np.float32), ("h_ptr", np.float16), ("i_ptr", np.int32), ("b_ptr", np.int8))
        inputs = {name: draw[at].astype(kind) for at, (name, kind) in enumerate(kinds)}
        counts = np.zeros(3 * _BINS, np.int32)
        return {**inputs, "c_ptr": counts, "y_ptr": np.zeros(PROGRAMS * self.outputs, np.float32), "size": self.outputs}
