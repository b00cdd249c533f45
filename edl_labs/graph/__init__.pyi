"""What type checkers see of the names that are imported at their first use; a test keeps it in step."""

from edl_labs.graph.graph_parts import Loop as Loop
from edl_labs.graph.graph_parts import Node as Node
from edl_labs.graph.graph_parts import TensorFacts as TensorFacts
from edl_labs.graph.greedy_fusions import fusions as fusions
from edl_labs.graph.inductor_kernels import InductorRun as InductorRun
from edl_labs.graph.inductor_kernels import inductor_run as inductor_run
from edl_labs.graph.kernel_groups import Broken as Broken
from edl_labs.graph.kernel_groups import Kernel as Kernel
from edl_labs.graph.kernel_groups import Partition as Partition
from edl_labs.graph.layout_plans import LayoutPlan as LayoutPlan
from edl_labs.graph.layout_plans import as_traced as as_traced
from edl_labs.graph.layout_plans import layer_by_layer as layer_by_layer
from edl_labs.graph.layout_plans import memory_format as memory_format
from edl_labs.graph.operator_graph import Graph as Graph
from edl_labs.graph.operator_graph import Lifetime as Lifetime
from edl_labs.graph.plain_graphs import partition_of as partition_of
from edl_labs.graph.plain_graphs import plain_graph as plain_graph
from edl_labs.graph.plain_graphs import plain_net as plain_net
