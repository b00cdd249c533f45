"""fuse: the operators of a graph in kernels, judged by what can run and by the bytes that are moved."""

from __future__ import annotations

import itertools
import re
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.graph.graph_parts import Loop, Node, TensorFacts
from edl_labs.graph.kernel_groups import Kernel, Partition
from edl_labs.graph.operator_graph import Graph
from edl_labs.units import byte_count, counted

WITHIN = 1.02  # of the fewest bytes, promised in the text


@exercise("fuse")
class Fuse(Exercise):
    """Kernels for a graph of operators: each can run, and together they move nearly the fewest bytes.

    `fuse(graph)` gives a list of kernels, each a dict of its `nodes` and of what it `writes`. Replayed on the IR.
    """

    answers = "all"

    answer_form: ClassVar[Any] = [{"nodes": [""], "writes": [""]}]

    def probe(self, student: Any, given: Any) -> Any:
        names = [node["name"] for node in given["graph"]["nodes"]]
        return _listed(student.fuse(_copied(given["graph"])), names)

    def student_inputs(self, case: Any) -> Any:
        """What `fuse` is given."""
        return {"graph": _copied(case["graph"])}

    def public_want(self, case: Any, want: Any) -> Any:
        """How many kernels: which they are would be the answer."""
        return {"kernels": len(want), "least_bytes": case["least_bytes"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        graph, kernels = as_graph(case["graph"]), tuple(Kernel((*one["nodes"],), (*one["writes"],)) for one in got)
        plan = Partition(graph, kernels, case["graph"]["longest_row"])
        for problem in sorted(plan.problems, key=lambda one: _ORDER.index(one.rule)):
            raise _broken(case["graph"], plan, problem)
        if plan.moved_bytes > WITHIN * case["least_bytes"]:
            what, then = _symptom(case["graph"], plan)
            why = f"with {counted(plan.launches, 'kernel')}, you move {byte_count(plan.moved_bytes)}, "
            raise Wrong(what, why=why + f"but {byte_count(case['least_bytes'])} is possible", next=then)

    def format_answer(self, case: Any, got: Any) -> str:
        """The kernels, with what they write."""
        return "\n       ".join(f"{' + '.join(one['nodes'])} → {', '.join(one['writes']) or 'nothing'}" for one in got)

    def format_case(self, case: Any) -> str:
        """Each node with what it reads."""
        graph = case["graph"]
        lines = [f"{one['name']} = {one['kind']}({', '.join(one['reads'])})" for one in graph["nodes"]]
        kept = f"outputs {', '.join(graph['outputs'])}; saved {', '.join(graph['saved']) or 'nothing'}"
        return "; ".join([*lines, kept, f"rows of up to {graph['longest_row']} elements stay on the chip"])


def as_graph(graph: Any) -> Graph:
    """The exercise's graph as one of the IR: sizes are bytes, and each node makes a tensor of its name."""
    made = {node["name"] for node in graph["nodes"]}
    weights = {one for node in graph["nodes"] if node["kind"] == "contraction" for one in node["reads"][1:]}
    tensors = {}
    for name, size in graph["bytes"].items():
        role = "made" if name in made else "parameter" if name in weights else "input"
        tensors[name] = TensorFacts(name, (size,), (1,), "bytes", 1, name, role)
    nodes = tuple(
        Node(
            node["name"],
            node["kind"],
            node["kind"],
            tuple(node["reads"]),
            (node["name"],),
            Loop(node["rows"], node["elements"] // node["rows"]) if node["rows"] else Loop(node["elements"]),
            sum(graph["bytes"][one] for one in node["reads"]),
            graph["bytes"][node["name"]],
        )
        for node in graph["nodes"]
    )
    kept = dict.fromkeys([*graph["outputs"], *graph["saved"]])
    return Graph("drawn", "drawn", nodes, tensors, tuple(kept))


def _copied(graph: Any) -> Any:
    return {
        **graph,
        "nodes": [{**node, "reads": [*node["reads"]]} for node in graph["nodes"]],
        "bytes": {**graph["bytes"]},
        "outputs": [*graph["outputs"]],
        "saved": [*graph["saved"]],
    }


def _listed(kernels: Any, names: list[str]) -> Any:
    """Kernels with lists, in the graph's order, for the sets that some keep names in; all else as it came."""
    if not isinstance(kernels, (list, tuple)) or not all(isinstance(one, dict) for one in kernels):
        return kernels
    place = {name: at for at, name in enumerate(names)}
    return [
        {
            key: sorted(value, key=lambda name: place.get(name, len(place)))
            if isinstance(value, (set, frozenset))
            else value
            for key, value in one.items()
        }
        for one in kernels
    ]


# What is told first where several rules are broken, each with its sentence and what to look at.
_RULES = {
    "unknown": ("one of your kernels has a node that the graph does not have", "use names from graph['nodes']"),
    "empty": ("one of your kernels has no nodes", "leave this kernel out"),
    "repeated": ("one of your kernels names the same node twice", "list each node once in a kernel"),
    "missing": ("your kernels leave out a node", "put each node into at least one kernel"),
    "before a product": (
        "one of your kernels computes what its own contraction reads",
        "compute these inputs in an earlier kernel: a product reads its inputs many times, in tiles",
    ),
    "two products": (
        "one of your kernels has contractions of different inputs",
        "let contractions share a kernel only if they read the same input: only weights can be stored side by side",
    ),
    "reduction after a product": (
        "one of your kernels has both a contraction and a reduction",
        "put the reduction into another kernel: it needs whole rows, but a tile has only a part of each row",
    ),
    "other loops": (
        "the nodes of one of your kernels need different loops",
        "compare the nodes' elements, and the rows of the reductions",
    ),
    "across a reduction": (
        "one of your kernels continues after a reduction whose row it cannot keep",
        "when the reduction has read the whole row, the row is needed again: is it still on the chip?",
    ),
    "computed twice": (
        "several of your kernels compute the same contraction or reduction",
        "compute this node in a single kernel: only pointwise nodes may be computed again",
    ),
    "writes another's": (
        "one of your kernels writes a result that it does not compute",
        "list only the kernel's own nodes in its writes",
    ),
    "circle": (
        "your kernels wait for each other in a circle",
        "split one of these kernels: it reads a result that depends on one of its own results",
    ),
    "never written": (
        "one of your kernels reads a result that no kernel writes",
        "write this result: values computed in a kernel are lost when it ends",
    ),
    "not kept": (
        "your kernels do not write an output of the graph",
        "write all outputs, because the caller reads them",
    ),
}
_ORDER = list(_RULES)


def _broken(graph: Any, plan: Partition, problem: Any) -> Wrong:
    what, then = _RULES[problem.rule]
    if problem.rule == "not kept" and problem.why.split()[0] in graph["saved"]:
        what = "your kernels do not write a result that the backward pass needs"
        then = "write all results that graph['saved'] lists, fused or not: the backward pass reads them"
    why = re.sub(
        r" of [\d.]+ \w*B\b", "", problem.why if problem.kernel < 0 else str(problem)
    )  # rows are elements here
    if problem.kernel >= 0 and len(plan.kernels) == 1 and len({*plan.kernels[0].nodes}) == len(graph["nodes"]):
        why += f"; your plan puts all {len(graph['nodes'])} nodes into this kernel"
    return Wrong(what, why=why, next=then)


def _symptom(graph: Any, plan: Partition) -> tuple[str, str]:
    """Why so many bytes: from what is done for nothing to what could still be joined."""
    saving = _saving(plan)
    if saving and not any(_are_neighbours(plan.graph, *pair) for pair in saving):
        return (
            "you join only kernels that are neighbours in the order of nodes",
            "try every pair: unrelated nodes may come between two that belong together",
        )
    if all(len(one.nodes) == 1 for one in plan.kernels):
        return (
            "in your plan, every node still has its own kernel",
            "which two kernels read the same tensor? Which kernel reads another kernel's result?",
        )
    needed = Partition(plan.graph, tuple(Kernel(one.nodes) for one in plan.kernels), plan.on_chip_bytes)
    if needed.moved_bytes < plan.moved_bytes:
        return (
            "your kernels write results that are never read",
            "write only results that another kernel reads, or that are in graph['outputs'] or graph['saved']",
        )
    if any(once.moved_bytes < needed.moved_bytes for once in _changed(needed, _without)):
        return (
            "one of your kernels computes a node again, which costs more than reading the node's result",
            "compare the bytes: reading all inputs of the node again, or writing its result once and reading it once",
        )
    for one, other in saving:
        return _apart(plan, one, other)
    if any(moved.moved_bytes < needed.moved_bytes for moved in _changed(needed, _behind_products)):
        return _LEFT_OUT
    if any(copied.moved_bytes < needed.moved_bytes for copied in _changed(needed, _copied_nodes)):
        return (
            "one of your kernels reads a result that it would be cheaper to compute again",
            "compare the bytes: writing and reading its result, or computing it again in the kernel that needs it",
        )
    return "your kernels move more bytes than necessary", "which tensor is written and read most often between kernels?"


def _changed(plan: Partition, changes: Any) -> list[Partition]:
    """What `changes` makes of the groups, one change at a time, where that can run."""
    groups = [one.nodes for one in plan.kernels]
    found = [
        Partition(plan.graph, tuple(Kernel(one) for one in changed if one), plan.on_chip_bytes)
        for changed in changes(plan, groups)
    ]
    return [one for one in found if one.is_legal]


def _with(groups: list[Any], at: int, names: Any) -> list[Any]:
    return [*groups[:at], tuple(names), *groups[at + 1 :]]


def _without(plan: Partition, groups: list[Any]) -> Any:
    """One node that several kernels compute is left out of one of them."""
    for at, names in enumerate(groups):
        for name in names:
            if sum(name in other for other in groups) > 1:
                yield _with(groups, at, (one for one in names if one != name))


def _copied_nodes(plan: Partition, groups: list[Any]) -> Any:
    """One kernel computes one more pointwise node itself."""
    for at, reads in enumerate(plan.reads):
        makers = (plan.graph.maker.get(name) for name in reads)
        for maker in makers:
            if maker is not None and maker.kind == "pointwise":
                yield _with(groups, at, (*groups[at], maker.name))


def _behind_products(plan: Partition, groups: list[Any]) -> Any:
    """One pointwise node moves into the kernel of the contraction that it reads."""
    home = {name: at for at, names in enumerate(groups) for name in names}
    for at, names in enumerate(groups):
        for name in names:
            node = plan.graph.by_name[name]
            for maker in (plan.graph.maker.get(one) for one in node.reads if node.kind == "pointwise"):
                if maker is not None and maker.kind == "contraction" and home[maker.name] != at:
                    moved = _with(groups, at, (one for one in names if one != name))
                    yield _with(moved, home[maker.name], (*groups[home[maker.name]], name))


def _saving(plan: Partition) -> list[tuple[Kernel, Kernel]]:
    """The pairs of kernels that could be one, and would then move fewer bytes."""
    needed = Partition(plan.graph, tuple(Kernel(one.nodes) for one in plan.kernels), plan.on_chip_bytes)
    found = []
    for i, j in itertools.combinations(range(len(needed.kernels)), 2):
        joined = _joined(needed, i, j)
        if joined.is_legal and joined.moved_bytes < needed.moved_bytes:
            found.append((needed.kernels[i], needed.kernels[j]))
    return found


def _are_neighbours(graph: Graph, one: Kernel, other: Kernel) -> bool:
    """Whether a node of one kernel comes next to one of the other in the graph's order."""
    place = {node.name: at for at, node in enumerate(graph.nodes)}
    return any(abs(place[a] - place[b]) == 1 for a in one.nodes for b in other.nodes)


def _joined(plan: Partition, i: int, j: int) -> Partition:
    rest = [one for at, one in enumerate(plan.kernels) if at not in (i, j)]
    both = Kernel(tuple(dict.fromkeys((*plan.kernels[i].nodes, *plan.kernels[j].nodes))))
    return Partition(plan.graph, (*rest, both), plan.on_chip_bytes)


_LEFT_OUT = (
    "your kernel of a contraction leaves out the pointwise nodes after the contraction",
    "add bias, activation or residual to this kernel: they can use each tile of the product while it is on the chip",
)


def _apart(plan: Partition, one: Kernel, other: Kernel) -> tuple[str, str]:
    """What two kernels are that could be one."""
    graph = plan.graph
    kinds = [{graph.by_name[name].kind for name in kernel.nodes} for kernel in (one, other)]
    if all("contraction" in kind for kind in kinds):
        then = "join products of the same input, such as q, k and v: their weights can be side by side"
        return "your kernels separate contractions of the same input", then
    if any("contraction" in kind for kind in kinds):
        return _LEFT_OUT
    if _just_fits(plan, one, other):
        then = (
            "keep rows of up to and including `longest_row` elements; compare the elements of one row, "
            "not the number of rows"
        )
        return "your kernels do not keep rows of exactly `longest_row` elements on the chip", then
    if any("reduction" in kind for kind in kinds):
        then = (
            "join the reduction with nodes of its loop: they may come before the reduction, or after it if its row "
            "stays on the chip"
        )
        return "your kernels separate a reduction from nodes with the same loop", then
    makes = {name for name in one.nodes for name in graph.by_name[name].makes}
    reads = {name for name in other.nodes for name in graph.by_name[name].reads}
    back = {name for name in one.nodes for name in graph.by_name[name].reads}
    if makes & reads or back & {name for node in other.nodes for name in graph.by_name[node].makes}:
        then = "let a node read another node's result in the same kernel, even if other kernels read it too"
        return "your kernels separate consecutive pointwise nodes", then
    return (
        "two of your kernels read the same tensor, but one kernel would be enough",
        "join these two kernels, so that the tensor is read once",
    )


def _just_fits(plan: Partition, one: Kernel, other: Kernel) -> bool:
    """Whether a kernel reads what a reduction in the other makes, whose rows have the longest length allowed."""
    for maker, reader in ((one, other), (other, one)):
        reads = {name for node in reader.nodes for name in plan.graph.by_name[node].reads}
        for name in maker.nodes:
            node = plan.graph.by_name[name]
            if node.kind == "reduction" and reads & {*node.makes} and node.loop.columns == plan.on_chip_bytes:
                return True
    return False
