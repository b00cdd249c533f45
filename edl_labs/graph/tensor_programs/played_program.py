"""What playing a program gave and took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_OF_SHAPES = frozenset({"full_like", "ones_like", "zeros_like", "new_full", "new_ones", "new_zeros"})
"""These use only the shape of their argument."""


@dataclass(frozen=True)
class Kernel:
    """One operator that ran; memory is known by the number of the first tensor that lay in it."""

    name: str
    reads: frozenset[int]
    writes: frozenset[int]
    takes_lists: bool
    """Whether it works on lists of tensors, as a fused optimizer does."""
    is_read: bool = False
    """Whether the host learns something of its result: it has a use then, though no output follows from it."""
    fills: frozenset[int] = frozenset()
    """Memory that holds constants alone after it: it was made of them, or overwritten with them as a whole."""


@dataclass
class Section:
    """What ran from one `section` on to the next."""

    name: str = ""
    operators: Counter[str] = field(default_factory=Counter)
    """Kernels by the operator's name (`add`, `mm`); views are not counted."""
    host_reads: int = 0
    """Values of tensors that follow from inputs, brought to the host, or sizes of results that follow from values; an
    optimizer's own count of steps is none."""
    read_values: list[float] = field(default_factory=list)
    """The values that these reads returned for these inputs."""
    conversions: int = 0
    """Kernels that read one dtype and write a different one."""
    moved_bytes: int = 0
    """Read and written by all kernels, each of its own."""
    contraction_flops: int = 0
    shapes: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """(operator, shape) of each tensor that a kernel created."""
    inputs: set[str] = field(default_factory=set)
    """Names of the program's inputs that an operator here has as an argument."""


@dataclass
class Played:
    """Outputs, and what playing them took."""

    outputs: dict[str, Any]
    sections: list[Section]
    peak_live_bytes: int
    """The most bytes of tensors at once after an operator, inputs excluded. A tensor counts until the recording let go
    of it, or until its last use here, whichever is later."""
    has_changed_reads: bool
    """Whether the host read a number that is another one here: its result is that of the recording."""
    made_since_input: dict[str, int] = field(default_factory=dict)
    """Elements that kernels made from the first use of an input on, by its name."""
    trace: list[Kernel] = field(default_factory=list)
    """Every kernel and every value read by the host, in the order in which they ran."""
    inputs_at: dict[str, int] = field(default_factory=dict)
    """The memory of each input."""
    outputs_at: dict[str, int] = field(default_factory=dict)
    """The memory of each output."""
    bytes_of: dict[int, int] = field(default_factory=dict)
    """The size of each memory that was allocated, and of each input's memory."""

    @property
    def kernels(self) -> int:
        """Operators that compute, views left out."""
        return sum(section.operators.total() for section in self.sections)

    def dead(self, names: Iterable[str], *, reads_are_uses: bool = True) -> set[int]:
        """The kernels, by their place in `trace`, from whose results none of these outputs follows.

        What the host reads has a use, unless `reads_are_uses` is false.
        """
        needed = {self.outputs_at[name] for name in names if name in self.outputs_at}
        found = set()
        for at in range(len(self.trace) - 1, -1, -1):
            kernel = self.trace[at]
            if needed.isdisjoint(kernel.writes) and not (kernel.is_read and reads_are_uses):
                found.add(at)
            else:
                needed |= kernel.reads
        return found

    def leading_to(self, names: Iterable[str]) -> set[int]:
        """The kernels, by their place in `trace`, from whose values these outputs follow."""
        needed = {self.outputs_at[name] for name in names if name in self.outputs_at}
        found = set()
        for at in range(len(self.trace) - 1, -1, -1):
            kernel = self.trace[at]
            if not needed.isdisjoint(kernel.writes):
                found.add(at)
                needed |= frozenset() if kernel.name in _OF_SHAPES else kernel.reads
        return found

    @property
    def host_reads(self) -> int:
        """How often a value was brought to the host."""
        return sum(section.host_reads for section in self.sections)

    @property
    def moved_bytes(self) -> int:
        """Read and written by all kernels."""
        return sum(section.moved_bytes for section in self.sections)

    @property
    def contraction_flops(self) -> int:
        """FLOPs of products."""
        return sum(section.contraction_flops for section in self.sections)
