"""Where the bytes of a buffer come from: through which copies and kernels, from which inputs. It needs no data.

Each byte of a buffer has an origin: byte p + offset of an input, or of the result of a kernel on given inputs. Origins
are written as digests, so that equal computations have equal origins in every program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.gpu.program import ALLOCATES, COMPUTED, COPIED, OPERATIONS, Entry, GPUOperationKind
from edl_labs.virtual.gpu.unrolled import unrolled
from edl_labs.virtual.intervals import Part, aligned, between, write

_MAX_VISITS = 500_000  # parts of buffers looked at: seconds of a judge's time
_MAX_OFFSETS = 32  # inputs that are followed byte by byte through a chain of elementwise kernels
_MAX_TEXT = 200  # two lines of a terminal

# A digest of the computation, and for each of its inputs the distance from a byte's position to that of its source.
Origin = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Piece:
    """Bytes `start` to `stop` have one origin: `origin` compares computations, `text` is for people."""

    start: int
    stop: int
    origin: str
    text: str = field(compare=False)


def contents(program: Sequence[Entry], buffer: int) -> tuple[Piece, ...]:
    """The origins of a buffer's bytes at the end of a checked program, followed in the order of issue."""
    flow = _Flow()
    for _, entry in unrolled(program):
        flow.follow(entry)
    if not 0 <= buffer < len(flow.memory):
        raise ReplayError(
            f"the program has no buffer {buffer}",
            why=f"the program allocated {len(flow.memory)} buffers",
            next="use a number that exists: buffers are numbered from 0 in the order of their allocation",
        )
    return tuple(
        Piece(start, stop, f"{digest}{list(offsets)}", flow.texts[digest])
        for start, stop, (digest, offsets) in flow.memory[buffer]
    )


class _Flow:
    """The origins of every buffer's bytes, operation by operation."""

    def __init__(self) -> None:
        self.memory: list[list[Part[Origin]]] = []
        self.texts: dict[str, str] = {}
        self._visits = 0

    def follow(self, entry: Entry) -> None:
        """Take the next operation."""
        kind = OPERATIONS[entry["op"]]
        if kind.effect == ALLOCATES:
            number = len(self.memory)
            # The number, not the name, tells buffers apart: anyone may call his buffer like another.
            self.memory.append([(0, entry["bytes"], (self._name(("initial", number), entry["name"]), (0,)))])
        elif kind.writes == COPIED:
            (source,), (destination,) = kind.touches(entry)
            self._write(destination, self._read(source))
        elif kind.writes == COMPUTED:
            self._compute(entry, kind)

    def _compute(self, entry: Entry, kind: GPUOperationKind) -> None:
        read, written = kind.touches(entry)
        inputs = [self._read(region) for region in read]
        name = entry.get("name", "host")
        for number, region in enumerate(written):
            size = region[2] - region[1]
            result = self._elementwise(name, inputs, size, number) if entry.get("elementwise") else None
            self._write(region, result or [(0, size, self._whole(name, inputs, number))])

    def _elementwise(
        self, name: str, inputs: list[list[Part[Origin]]], size: int, number: int
    ) -> list[Part[Origin]] | None:
        result: list[Part[Origin]] = []
        for start, stop, origins in aligned(inputs, size):
            offsets = tuple(offset for origin in origins for offset in origin[1])
            if len(offsets) > _MAX_OFFSETS:
                return None
            children = tuple(origin[0] for origin in origins)
            text = f"{name}({', '.join(self.texts[child] for child in children)})"
            result.append((start, stop, (self._name(("each", name, number, children), text), offsets)))
        return result

    def _whole(self, name: str, inputs: list[list[Part[Origin]]], number: int) -> Origin:
        sources = [self.texts[origin[0]] for parts in inputs for _, _, origin in parts[:3]]
        text = f"{name}({', '.join(dict.fromkeys(sources))})"
        return self._name(("whole", name, number, inputs), text), (0,)

    def _name(self, computation: object, text: str) -> str:
        digest = blake2b(repr(computation).encode(), digest_size=12).hexdigest()
        self.texts.setdefault(digest, text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…")
        return digest

    def _read(self, region: list[int]) -> list[Part[Origin]]:
        """The parts of a region, in positions counted from its start."""
        number, start, stop = region
        found = _shifted(between(self.memory[number], start, stop), -start)
        self._count(len(found))
        return found

    def _write(self, region: list[int], new: list[Part[Origin]]) -> None:
        parts = self.memory[region[0]]
        replaced = write(parts, _shifted(new, region[1]))
        self._count(replaced + len(new) + len(parts) // 64)

    def _count(self, visits: int) -> None:
        self._visits += visits
        if self._visits > _MAX_VISITS:
            raise ReplayError(
                "the program splits its buffers into too many parts to track",
                why="parts whose contents come from different places are tracked separately",
                next="use larger chunks",
            )


def _shifted(parts: list[Part[Origin]], by: int) -> list[Part[Origin]]:
    """The same parts so many bytes further on; where each byte comes from stays."""
    return [
        (start + by, stop + by, (digest, tuple(offset - by for offset in offsets)))
        for start, stop, (digest, offsets) in parts
    ]
