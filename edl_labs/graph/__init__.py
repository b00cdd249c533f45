"""A model as a graph: its operators, what they read and write, what may become one kernel, and in which layout.

>>> from edl_labs.graph import Kernel
>>> Kernel(("add", "relu"), writes=("relu",)).nodes
('add', 'relu')
"""

from __future__ import annotations

from edl_labs.arguments import lazy_facade

_HOMES = {
    "Graph": "operator_graph",
    "Lifetime": "operator_graph",
    "Loop": "graph_parts",
    "Node": "graph_parts",
    "TensorFacts": "graph_parts",
    "Broken": "kernel_groups",
    "Kernel": "kernel_groups",
    "Partition": "kernel_groups",
    "fusions": "greedy_fusions",
    "InductorRun": "inductor_kernels",
    "inductor_run": "inductor_kernels",
    "LayoutPlan": "layout_plans",
    "as_traced": "layout_plans",
    "layer_by_layer": "layout_plans",
    "memory_format": "layout_plans",
    "partition_of": "plain_graphs",
    "plain_graph": "plain_graphs",
    "plain_net": "plain_graphs",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_facade(__name__, _HOMES)
