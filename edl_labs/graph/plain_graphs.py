"""A model's graph as lists and dicts of names and numbers, for functions that group its operators or place layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.graph.graph_parts import Node
from edl_labs.graph.kernel_groups import ON_CHIP_BYTES, Kernel, Partition
from edl_labs.graph.operator_graph import Graph

_ITEMSIZE = 4  # float32, of which a row on the chip is made here


@checked_arguments()
def plain_graph(graph: Graph, *, on_chip_bytes: int = ON_CHIP_BYTES) -> dict[str, Any]:
    """The operators of a forward pass: dicts of `nodes`, `bytes`, `outputs`, `saved` (none), and the `longest_row`.

    A node's result bears the node's name and is its first tensor; views are the memory that they view. A contraction
    reads its weights behind its other inputs. What only moves or looks up values counts as pointwise.
    """
    named = {one: node.name for node in graph.nodes for one in node.makes}
    own = {name: one.bytes for name, one in graph.tensors.items() if not one.is_view and name not in named}
    made = {node.name: graph.tensors[node.makes[0]].bytes for node in graph.nodes}
    return {
        "nodes": [_plain_node(graph, node, named) for node in graph.nodes],
        "bytes": {**own, **made},
        "outputs": list(dict.fromkeys(named.get(base, base) for base in sorted(graph.kept))),
        "saved": [],
        "longest_row": on_chip_bytes // _ITEMSIZE,
    }


def _plain_node(graph: Graph, node: Node, named: Mapping[str, str]) -> dict[str, Any]:
    bases = dict.fromkeys(graph.tensors[one].base for one in node.reads)
    weights_last = sorted(bases, key=lambda base: graph.tensors[base].role == "parameter")
    kind = node.kind if node.kind in ("contraction", "reduction") else "pointwise"
    return {
        "name": node.name,
        "kind": kind,
        "reads": [named.get(base, base) for base in weights_last],
        "elements": node.loop.elements,
        "rows": node.loop.rows if kind == "reduction" else None,
    }


@checked_arguments()
def partition_of(graph: Graph, kernels: Iterable[Mapping[str, Sequence[str]]]) -> Partition:
    """The partition that plain kernels, dicts of `nodes` and `writes`, make of a graph."""
    first = {node.name: node.makes[0] for node in graph.nodes}
    made = (Kernel(tuple(one["nodes"]), tuple(first[name] for name in one["writes"])) for one in kernels)
    return Partition(graph, tuple(made))


@checked_arguments()
def plain_net(graph: Graph, *, layout: str) -> list[dict[str, Any]]:
    """A chain of layers on images, as dicts of `name`, `op`, `inputs` and `shape`, a `weight` for convolutions.

    `layout`, "NCHW" or "NHWC", is what its input has and its output is to have.
    """
    image = graph.tensors[next(name for name, one in graph.tensors.items() if one.role == "input")]
    net: list[dict[str, Any]] = [{"name": image.name, "op": "input", "inputs": [], "shape": list(image.shape)}]
    for node in graph.nodes:
        one = {"name": node.name, "op": "any", "inputs": [net[-1]["name"]]}
        one["shape"] = list(graph.tensors[node.makes[0]].shape)
        if node.operator == "convolution":
            one |= {"op": "conv", "weight": list(graph.tensors[node.reads[1]].shape)}
        net.append(one)
    net.append({"name": "result", "op": "output", "inputs": [net[-1]["name"]], "shape": net[-1]["shape"]})
    return [{**one, "layout": layout} if one["op"] in ("input", "output") else one for one in net]
