"""Memory layouts of a graph's tensors: what strides say, and what a plan of layouts has to copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from edl_labs.arguments import checked_arguments
from edl_labs.graph.graph_parts import Node, TensorFacts
from edl_labs.graph.operator_graph import Graph
from edl_labs.units import byte_count, counted
from edl_labs.values import Value

_ORDERS = {"NCHW": (3, 2, 1, 0), "NHWC": (1, 3, 2, 0)}  # dimensions from the innermost one


@checked_arguments()
def memory_format(tensor: TensorFacts) -> str:
    """NCHW, NHWC, both (one channel or one pixel: the same bytes in the same places) or neither; "" if not 4-D."""
    if len(tensor.shape) != 4:
        return ""
    found = [name for name, order in _ORDERS.items() if _follows(tensor, order)]
    return "both" if len(found) == 2 else found[0] if found else "neither"


def _follows(tensor: TensorFacts, order: tuple[int, ...]) -> bool:
    due = 1
    for at in order:
        if tensor.shape[at] != 1 and tensor.stride[at] != due:
            return False
        due *= tensor.shape[at]
    return True


@dataclass(frozen=True, repr=False)
class LayoutPlan(Value):
    """A layout for every node that gives a tensor of four dimensions, by name, and for the inputs.

    A tensor whose readers have another layout is copied for them: read and written once. Where both layouts are the
    same bytes nothing is copied. Convolutions read and write NHWC (`wants`), weights included; they are copied in
    each run unless they are stored so.
    """

    OMITTED = ("graph",)
    DERIVED = ("copied_bytes",)

    graph: Graph
    layouts: Mapping[str, str] = field(hash=False)
    wants: str = "NHWC"

    @cached_property
    def copies(self) -> dict[str, int]:
        """Bytes that each copied tensor's copy reads and writes."""
        found: dict[str, int] = {}
        for node in self.graph.nodes:
            for name in node.reads:
                tensor = self.graph.tensors[name]
                given = self._given(tensor)
                wanted = self._wanted(node)
                if given and wanted and given != wanted and memory_format(tensor) != "both":
                    found[tensor.base] = 2 * tensor.bytes
        return found

    @property
    def copied_bytes(self) -> int:
        """Bytes of all copies."""
        return sum(self.copies.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """Nodes that cannot run in their layout."""
        return tuple(
            f"{node.name} runs only in {self.wants}"
            for node in self.graph.nodes
            if _is_convolution(node) and self._of(node) not in ("", self.wants)
        )

    def _of(self, node: Node) -> str:
        return self.layouts.get(node.name, "") if _is_image(self.graph, node) else ""

    def _wanted(self, node: Node) -> str:
        return self.wants if _is_convolution(node) else self._of(node)

    def _given(self, tensor: TensorFacts) -> str:
        """The layout in which a tensor is there; "" for what has none."""
        if len(tensor.shape) != 4:
            return ""
        maker = self.graph.maker.get(tensor.name)
        if maker is not None:
            return self._of(maker)
        return self.layouts.get(tensor.base, memory_format(self.graph.tensors[tensor.base]))

    def __str__(self) -> str:
        copies = counted(len(self.copies), "tensor")
        weights = sum(self.graph.tensors[name].role == "parameter" for name in self.copies)
        return f"{copies} copied, {byte_count(self.copied_bytes)} ({weights} of them weights)"


def _is_convolution(node: Node) -> bool:
    return node.kind == "contraction" and node.operator.startswith(("convolution", "conv2d"))


def _is_image(graph: Graph, node: Node) -> bool:
    return any(len(graph.tensors[name].shape) == 4 for name in node.makes)


@checked_arguments()
def as_traced(graph: Graph) -> LayoutPlan:
    """The layouts that the tensors have in the graph: PyTorch's, which hands on what it is given."""
    found = {}
    for node in graph.nodes:
        formats = [memory_format(graph.tensors[name]) for name in node.makes]
        image = next((one for one in formats if one), "")
        if image in _ORDERS:
            found[node.name] = image
    return LayoutPlan(graph, found)


@checked_arguments()
def layer_by_layer(graph: Graph) -> LayoutPlan:
    """NCHW for all that convolutions do not make, which copies before and behind each of them."""
    images = [node for node in graph.nodes if _is_image(graph, node)]
    return LayoutPlan(graph, {node.name: "NHWC" if _is_convolution(node) else "NCHW" for node in images})
