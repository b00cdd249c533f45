"""Operators put together into kernels: whether that is possible, in words, and the bytes that are then moved.

The rules are those of compilers that make kernels from loops (inductor, TensorRT, XLA): a kernel is one loop; a product
comes first in its kernel; what leaves a kernel is written to memory, and what it reads was written by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from edl_labs.graph.graph_parts import Node, runs_of
from edl_labs.graph.operator_graph import Graph
from edl_labs.presenters import Plottable
from edl_labs.units import byte_count
from edl_labs.values import Value

ON_CHIP_BYTES = 128 * 1024  # a row that a kernel can keep: half of the registers of an SM (A100, H100: 256 KiB)
# They find the rows of a table by number: of the table, no more is read than comes back.
_LOOKS_UP = frozenset(("embedding", "index", "gather", "index_select"))


@dataclass(frozen=True, repr=False)
class Kernel(Value):
    """Nodes that run as one kernel, and the tensors that it writes; None: what others need."""

    nodes: tuple[str, ...]
    writes: tuple[str, ...] | None = None


@dataclass(frozen=True, repr=False)
class Broken(Value):
    """A rule that a partition breaks: which, in which kernel, and how."""

    rule: str
    kernel: int
    why: str

    def __str__(self) -> str:
        return f"kernel {self.kernel}: {self.why}"


@dataclass(frozen=True, repr=False)
class Partition(Value, Plottable):
    """A graph in kernels. A pointwise node may be in several: it is then computed in each.

    `problems` says what makes it impossible; bytes and launches are those of the kernels as they stand.
    """

    OMITTED = ("graph",)
    DERIVED = ("launches", "moved_bytes")

    graph: Graph
    kernels: tuple[Kernel, ...]
    on_chip_bytes: int = ON_CHIP_BYTES

    @classmethod
    def one_each(cls, graph: Graph) -> Partition:
        """Every operator a kernel of its own: eager mode."""
        return cls(graph, tuple(Kernel((node.name,)) for node in graph.nodes))

    @property
    def launches(self) -> int:
        """How many kernels there are."""
        return len(self.kernels)

    @cached_property
    def reads(self) -> tuple[Mapping[str, int], ...]:
        """For each kernel the bytes that it reads of each tensor's memory."""
        return tuple(read_bytes(self.graph, kernel.nodes) for kernel in self.kernels)

    @cached_property
    def writes(self) -> tuple[tuple[str, ...], ...]:
        """For each kernel the tensors that it writes: what it says, or else what is kept or read elsewhere."""
        first: dict[str, int] = {}
        for at, kernel in enumerate(self.kernels):
            for name in made_by(self.graph, kernel.nodes):
                first.setdefault(name, at)
        needed = self.graph.kept.union(*self.reads) if self.kernels else self.graph.kept
        return tuple(
            kernel.writes
            if kernel.writes is not None
            else tuple(name for name in made_by(self.graph, kernel.nodes) if name in needed and first[name] == at)
            for at, kernel in enumerate(self.kernels)
        )

    def kernel_bytes(self, at: int) -> int:
        """Bytes that a kernel reads and writes."""
        written = sum(self.graph.tensors[name].bytes for name in self.writes[at] if name in self.graph.tensors)
        return sum(self.reads[at].values()) + written

    @cached_property
    def moved_bytes(self) -> int:
        """Bytes that all kernels read and write."""
        return sum(self.kernel_bytes(at) for at in range(self.launches))

    @cached_property
    def problems(self) -> tuple[Broken, ...]:
        """Rules that are broken; empty where these kernels compute what the graph does."""
        found = list(self._unknown())
        if found:
            return tuple(found)
        for at, kernel in enumerate(self.kernels):
            broken = broken_rule(self.graph, kernel.nodes, on_chip_bytes=self.on_chip_bytes)
            if broken:
                found.append(Broken(broken[0], at, broken[1]))
        return (*found, *self._computed(), *self._written(), *self._circles())

    @property
    def is_legal(self) -> bool:
        """Whether no rule is broken."""
        return not self.problems

    def _unknown(self) -> Iterable[Broken]:
        for at, kernel in enumerate(self.kernels):
            for name in kernel.nodes:
                if name not in self.graph.by_name:
                    yield Broken("unknown", at, f"the graph has no node {name}")
            if not kernel.nodes:
                yield Broken("empty", at, "it contains no node")
            if len(set(kernel.nodes)) < len(kernel.nodes):
                yield Broken("repeated", at, "it contains the same node twice")

    def _computed(self) -> Iterable[Broken]:
        places: dict[str, list[int]] = {}
        for at, kernel in enumerate(self.kernels):
            for name in kernel.nodes:
                places.setdefault(name, []).append(at)
        for node in self.graph.nodes:
            found = places.get(node.name, [])
            if not found:
                yield Broken("missing", -1, f"no kernel computes {node.name}")
            elif len(found) > 1 and node.kind not in ("pointwise", "layout"):
                yield Broken(
                    "computed twice",
                    found[1],
                    f"{node.name}, a {node.kind}, has already been computed by another kernel",
                )

    def _written(self) -> Iterable[Broken]:
        written = {name for names in self.writes for name in names}
        for at, names in enumerate(self.writes):
            strange = sorted(set(names) - set(made_by(self.graph, self.kernels[at].nodes)))
            if strange:
                yield Broken("writes another's", at, f"it writes {strange[0]}, which it does not compute")
        for at, reads in enumerate(self.reads):
            for name in reads:
                if name in self.graph.maker and name not in written:
                    yield Broken("never written", at, f"it reads {name}, but no kernel writes it")
        for name in sorted(self.graph.kept & set(self.graph.maker)):
            if name not in written:
                yield Broken("not kept", -1, f"{name} is a result, but no kernel writes it")

    def _circles(self) -> Iterable[Broken]:
        writer: dict[str, int] = {}
        for at, names in enumerate(self.writes):
            for name in names:
                writer.setdefault(name, at)
        waits = {at: {writer[name] for name in reads if name in writer} for at, reads in enumerate(self.reads)}
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            circle = error.args[1]
            yield Broken(
                "circle",
                circle[0],
                "it waits for its own result, through kernels " + " → ".join(map(str, circle[::-1])),
            )

    def __str__(self) -> str:
        eager = self.graph.moved_bytes
        return (
            f"{len(self.graph.nodes)} operators in {self.launches} kernels, {byte_count(self.moved_bytes)} moved "
            f"instead of {byte_count(eager)}" + (f"; not possible: {self.problems[0]}" if self.problems else "")
        )


def made_by(graph: Graph, names: Iterable[str]) -> list[str]:
    """The tensors that nodes make."""
    return [one for name in names if name in graph.by_name for one in graph.by_name[name].makes]


def read_bytes(graph: Graph, names: Sequence[str]) -> dict[str, int]:
    """The bytes that a kernel of these nodes reads of each tensor's memory: what it makes itself, it need not read."""
    made = set(made_by(graph, names))
    found: dict[str, dict[tuple[object, ...], int]] = {}
    for name in names:
        node = graph.by_name.get(name)
        for at, one in enumerate(node.reads if node else ()):
            facts = graph.tensors[one]
            if node is None or facts.base in made:
                continue
            size = facts.bytes
            if at == 0 and node.operator in _LOOKS_UP:
                size = min(size, node.written_bytes)
            # Two names of the same elements count once; parts of one tensor never more than it has.
            is_whole = facts.elements * facts.itemsize == graph.tensors[facts.base].bytes
            found.setdefault(facts.base, {})[() if is_whole else (one,)] = size
    return {base: min(graph.tensors[base].bytes, sum(parts.values())) for base, parts in found.items()}


def broken_rule(graph: Graph, names: Sequence[str], *, on_chip_bytes: int = ON_CHIP_BYTES) -> tuple[str, str] | None:
    """The first rule that nodes break as one kernel, and how; None where they can be one. It looks for no circles."""
    nodes = [graph.by_name[name] for name in names]
    if len(nodes) < 2:
        return None
    if {node.direction for node in nodes} == {"forward", "backward"}:
        return "both directions", "it contains forward and backward operators, but the loss comes between them"
    other = next((node for node in nodes if node.kind == "other"), None)
    if other is not None:
        return "alone", f"{other.name} ({other.operator}) needs a kernel of its own"
    feeds = _feeding(graph, nodes)
    if any(node.kind == "contraction" for node in nodes):
        return _broken_product(graph, nodes, feeds)
    return _broken_loop(graph, nodes, feeds, on_chip_bytes)


def _feeding(graph: Graph, nodes: list[Node]) -> dict[str, set[str]]:
    """For each node the others of the kernel that its result is made of."""
    inside = {node.name for node in nodes}
    found: dict[str, set[str]] = {}
    order = sorted(nodes, key=lambda node: graph.place[node.name])
    for node in order:
        before: set[str] = set()
        for one in node.reads:
            maker = graph.maker.get(one)
            if maker is not None and maker.name in inside and maker.name != node.name:
                before |= {maker.name} | found.get(maker.name, set())
        found[node.name] = before
    return found


def _broken_product(graph: Graph, nodes: list[Node], feeds: Mapping[str, set[str]]) -> tuple[str, str] | None:
    products = [node for node in nodes if node.kind == "contraction"]
    for node in products:
        if feeds[node.name]:
            return "before a product", f"{sorted(feeds[node.name])[0]} feeds the product {node.name}"
        if len(node.makes) > 1:
            return "alone", f"{node.name} ({node.operator}) needs a kernel of its own"
        if not _are_stackable(graph, products[0], node):
            return "two products", f"{products[0].name} and {node.name} do not multiply the same input"
    sizes = {node.loop.elements for node in products}
    for node in nodes:
        if node.kind == "reduction":
            return (
                "reduction after a product",
                f"{node.name} needs whole rows, but a tile of {products[0].name} contains only part of a row",
            )
        behind = {one.loop.elements for one in products if one.name in feeds[node.name]} or sizes
        if node.kind != "contraction" and behind != {node.loop.elements}:
            return (
                "other loops",
                f"{node.name} has {node.loop.elements} elements, but the product {products[0].name} has {max(sizes)}",
            )
    return None


def _are_stackable(graph: Graph, one: Node, other: Node) -> bool:
    """Whether two products read the same matrix in the same place, so that their weights can lie side by side."""
    if one is other:
        return True
    if one.operator != other.operator or len(one.reads) != len(other.reads):
        return False
    pairs = list(zip(one.reads, other.reads, strict=True))
    same = [_is_same(graph, a, b) for a, b in pairs]
    if not any(same):
        return False
    if "conv" in one.operator:
        weights = [graph.tensors[node.reads[1]].shape[1:] for node in (one, other)]
        results = [graph.tensors[node.makes[0]].shape[2:] for node in (one, other)]
        return same[0] and weights[0] == weights[1] and results[0] == results[1]
    return True


def _is_same(graph: Graph, one: str, other: str) -> bool:
    a, b = graph.tensors[one], graph.tensors[other]
    return (a.base, a.shape, a.stride) == (b.base, b.shape, b.stride) and a.role in ("input", "made", "gradient")


def _broken_loop(
    graph: Graph, nodes: list[Node], feeds: Mapping[str, set[str]], on_chip_bytes: int
) -> tuple[str, str] | None:
    reductions = [node for node in nodes if node.kind == "reduction"]
    rows = reductions[0].loop if reductions else None
    for node in reductions[1:]:
        if node.loop != rows or node.loop.runs == "windows":
            return (
                "other loops",
                f"{reductions[0].name} and {node.name} loop over rows of different sizes or dimensions",
            )
    counts = {rows.elements, rows.rows} if rows else set()
    for node in nodes:
        if node.kind == "reduction" or not node.reads:
            continue
        counts = counts or {node.loop.elements}
        if node.loop.elements not in counts:
            sizes = " or ".join(map(str, sorted(counts)))
            return "other loops", f"{node.name} has {node.loop.elements} elements, but the others have {sizes}"
        if node.kind == "layout" and _gathers(graph, node, feeds):
            return "other loops", f"{node.name} reads elements at other positions than its loop computes"
    for reduction in reductions:
        broken = _broken_reduction(graph, nodes, feeds, reduction, on_chip_bytes)
        if broken:
            return broken
    return None


def _gathers(graph: Graph, node: Node, feeds: Mapping[str, set[str]]) -> bool:
    """Whether a layout change reads a tensor of another size that its own kernel makes."""
    inside = [
        graph.tensors[one] for one in node.reads if one in graph.maker and graph.maker[one].name in feeds[node.name]
    ]
    return any(one.elements != node.loop.elements for one in inside)


def _broken_reduction(
    graph: Graph, nodes: list[Node], feeds: Mapping[str, set[str]], reduction: Node, on_chip_bytes: int
) -> tuple[str, str] | None:
    loop = reduction.loop
    row_bytes = loop.columns * max(graph.tensors[one].itemsize for one in reduction.reads)
    for node in nodes:
        is_behind, is_before = reduction.name in feeds[node.name], node.name in feeds[reduction.name]
        if node.kind == "layout" and is_before:
            return (
                "across a reduction",
                f"{node.name} moves elements to other rows before {reduction.name} reduces them",
            )
        again = node.loop.elements == loop.elements and node.loop.elements > loop.rows
        if row_bytes > on_chip_bytes and again and (is_behind if reduction.gives_rows else is_before):
            why = f"{reduction.name} must have read a row of {byte_count(row_bytes)} before {node.name} reads it again"
            if is_before:
                why = (
                    f"{reduction.name} reads a row of {byte_count(row_bytes)} twice, but {node.name} would produce "
                    "it only once"
                )
            return "across a reduction", why
        if is_behind and node.kind != "reduction" and again and not _is_aligned(graph, node, reduction):
            return "across a reduction", f"{node.name} needs the result of {reduction.name} for rows other than its own"
    return None


def _is_aligned(graph: Graph, node: Node, reduction: Node) -> bool:
    """Whether a node that reads a result of each row reads the one of its own row."""
    if not reduction.gives_rows or reduction.loop.runs in ("", "windows"):
        return True
    out = graph.tensors[node.makes[0]]
    for one in node.reads:
        facts = graph.tensors[one]
        maker = graph.maker.get(one)
        if maker is None or maker.name != reduction.name:
            continue
        shape = (1,) * (len(out.shape) - len(facts.shape)) + facts.shape
        stride = (0,) * (len(out.shape) - len(facts.shape)) + facts.stride
        missing = {at for at, (size, step) in enumerate(zip(shape, stride, strict=True)) if size == 1 or step == 0}
        if runs_of(out.shape, out.stride, missing) != reduction.loop.runs:
            return False
    return True
