"""The cases of fuse: graphs put together from parts of real models, and the fewest bytes of any partition."""

from __future__ import annotations

import itertools
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab08b_layouts.fused_kernels import as_graph
from edl_labs.graph.kernel_groups import broken_rule

# Parts of each case's graph: each mistake shows in one case at least, and no two in the same ones.
_RECIPES = (
    ("siblings", "detour", "loss"),
    ("attention", "detour"),
    ("perceptron", "short norm"),
    ("shared cheap", "attention"),
    ("shared dear", "loss"),
    ("perceptron", "long norm"),
)
# Their nodes take turns, so that what belongs together never lies side by side.
_INTERLEAVED = ("attention", "short norm", "tied")
_LONGEST_ROW = 16384  # 64 KiB of float32: what a block keeps in shared memory on GPUs of today


@case_source("fuse")
def operator_graphs(rng: Any) -> list[Case]:
    cases = [*(_case(rng, recipe) for recipe in _RECIPES), _case(rng, _INTERLEAVED, take_turns=True)]
    return [Case.split(one, "least_bytes") for one in cases]


def _case(rng: Any, recipe: tuple[str, ...], *, take_turns: bool = False) -> dict[str, Any]:
    drawn, starts = _Drawing(rng), [0]
    for part in recipe:
        _PARTS[part](drawn)
        starts.append(len(drawn.nodes))
    parts = [drawn.nodes[start:stop] for start, stop in itertools.pairwise(starts)]
    turns = [node for nodes in itertools.zip_longest(*parts) for node in nodes if node]
    graph = {
        "nodes": turns if take_turns else drawn.nodes,
        "bytes": drawn.bytes,
        "outputs": drawn.outputs,
        "saved": drawn.saved,
        "longest_row": drawn.longest_row,
    }
    return {"graph": graph, "least_bytes": least_bytes(graph)}


class _Drawing:
    """A graph that grows part by part; each part works on elements of its own number."""

    def __init__(self, rng: Any) -> None:
        self.rng, self.parts, self.longest_row = rng, 0, _LONGEST_ROW
        self.nodes: list[dict[str, Any]] = []
        self.bytes: dict[str, int] = {}
        self.outputs: list[str] = []
        self.saved: list[str] = []

    def part(self) -> tuple[int, int, int]:
        """Rows, columns and elements of the next part."""
        self.parts += 1
        rows = int(self.rng.choice([2048, 3072, 4096, 6144])) + 64 * self.parts
        columns = int(self.rng.choice([512, 768, 1024, 1536]))
        return rows, columns, rows * columns

    def tensor(self, name: str, elements: int) -> str:
        """An input or a weight."""
        self.bytes[f"{name}{self.parts}"] = 2 * elements
        return f"{name}{self.parts}"

    def node(self, name: str, kind: str, reads: list[str], elements: int, *, rows: int = 0) -> str:
        """A node, called after its part."""
        own = f"{name}{self.parts}"
        node = {"name": own, "kind": kind, "reads": reads, "elements": elements, "rows": rows or None}
        self.nodes.append(node)
        self.bytes[own] = 4 * rows if rows else 2 * elements
        return own


def _attention(at: _Drawing) -> None:
    _, columns, size = at.part()
    x = at.tensor("x", size)
    heads = [at.tensor(f"w_{one}_", columns**2) for one in "qkv"]
    q, k, v = (at.node(one, "contraction", [x, weight], size) for one, weight in zip("qkv", heads, strict=True))
    at.outputs += [at.node("scaled", "pointwise", [q], size), k]
    at.outputs.append(at.node("biased", "pointwise", [v, at.tensor("bias", columns)], size))


def _detour(at: _Drawing) -> None:
    """Squeeze and excite: a mean goes through a small product and comes back as a scale."""
    rows, _, size = at.part()
    added = at.node("added", "pointwise", [at.tensor("x", size), at.tensor("branch", size)], size)
    mean = at.node("mean", "reduction", [added], size, rows=rows)
    gate = at.node("gate", "contraction", [mean, at.tensor("w", rows)], rows)
    at.outputs.append(at.node("scaled", "pointwise", [added, gate], size))
    at.saved.append(added)


def _perceptron(at: _Drawing) -> None:
    _, columns, size = at.part()
    x = at.tensor("x", size)
    dropped = at.node("dropped", "pointwise", [x, at.tensor("mask", size)], size)
    up = at.node("up", "contraction", [dropped, at.tensor("w", columns**2)], size)
    biased = at.node("biased", "pointwise", [up, at.tensor("bias", columns)], size)
    gelu = at.node("gelu", "pointwise", [biased], size)
    at.outputs.append(at.node("residual", "pointwise", [gelu, x], size))
    at.saved += [dropped, biased]


def _norm(at: _Drawing, rows: int, size: int) -> None:
    x = at.tensor("x", size)
    added = at.node("added", "pointwise", [x, at.tensor("branch", size)], size)
    mean = at.node("mean", "reduction", [added], size, rows=rows)
    variance = at.node("variance", "reduction", [added, mean], size, rows=rows)
    normal = at.node("normal", "pointwise", [added, mean, variance], size)
    at.outputs.append(at.node("scaled", "pointwise", [normal, at.tensor("gain", size // rows)], size))
    at.saved += [added, mean, variance]


def _short_norm(at: _Drawing) -> None:
    """Statistics of rows that can just be kept."""
    rows, columns, size = at.part()
    _norm(at, rows, size)
    at.longest_row = columns


def _long_norm(at: _Drawing) -> None:
    """Statistics of channels: a row has every pixel of a batch."""
    _, columns, size = at.part()
    _norm(at, columns // 16, size)


def _tied(at: _Drawing) -> None:
    """Two inputs and one weight: products that share a read, and not their input."""
    _, columns, size = at.part()
    weight = at.tensor("w", columns**2)
    for one in ("query", "document"):
        at.outputs.append(at.node(f"of_{one}", "contraction", [at.tensor(one, size), weight], size))


def _shared_cheap(at: _Drawing) -> None:
    """A ReLU that sums of rows and sums of columns read: computed again, it need not be written."""
    rows, columns, size = at.part()
    relu = at.node("relu", "pointwise", [at.tensor("x", size)], size)
    at.outputs.append(at.node("rows", "reduction", [relu], size, rows=rows))
    at.outputs.append(at.node("columns", "reduction", [relu], size, rows=columns))


def _shared_dear(at: _Drawing) -> None:
    """The same behind a sum of three: computed again, all three are read again."""
    rows, columns, size = at.part()
    three = [at.tensor(one, size) for one in ("x", "y", "z")]
    mixed = at.node("mixed", "pointwise", three, size)
    squared = at.node("squared", "pointwise", [mixed], size)
    at.outputs.append(at.node("rows", "reduction", [squared], size, rows=rows))
    at.outputs.append(at.node("columns", "reduction", [squared], size, rows=columns))


def _siblings(at: _Drawing) -> None:
    """Two that read the same and not each other."""
    _, _, size = at.part()
    x = at.tensor("x", size)
    one = at.node("gate", "pointwise", [x, at.tensor("y", size)], size)
    at.outputs += [one, at.node("mask", "pointwise", [x], size)]


def _loss(at: _Drawing) -> None:
    rows, columns, size = at.part()
    logits = at.node("logits", "contraction", [at.tensor("x", size), at.tensor("w", columns**2)], size)
    error = at.node("error", "pointwise", [logits, at.tensor("target", size)], size)
    at.outputs.append(at.node("total", "reduction", [error], size, rows=rows))
    at.saved.append(error)


_PARTS = {
    "attention": _attention,
    "detour": _detour,
    "perceptron": _perceptron,
    "short norm": _short_norm,
    "long norm": _long_norm,
    "shared cheap": _shared_cheap,
    "shared dear": _shared_dear,
    "siblings": _siblings,
    "tied": _tied,
    "loss": _loss,
}


def least_bytes(graph: Any) -> int:
    """The fewest bytes of any legal partition, found by looking at all; parts that share nothing are searched alone."""
    return sum(_Search(graph, names).best for names in _components(graph))


def _components(graph: Any) -> list[list[str]]:
    """Names of nodes that are joined by tensors: kernels over several of them save nothing."""
    groups: list[tuple[set[str], list[str]]] = []
    for node in graph["nodes"]:
        tensors, names = {node["name"], *node["reads"]}, [node["name"]]
        rest = []
        for group in groups:
            if group[0] & tensors:
                tensors |= group[0]
                names = group[1] + names
            else:
                rest.append(group)
        groups = [*rest, (tensors, names)]
    return [names for _, names in groups]


class _Search:
    """All partitions of a few nodes, and each with pointwise nodes computed again wherever they are read."""

    def __init__(self, graph: Any, names: list[str]) -> None:
        self.ir, self.size = as_graph(graph), graph["bytes"]
        self.limit = graph["longest_row"]
        self.kept = {*graph["outputs"], *graph["saved"]}
        self.nodes = {node["name"]: node for node in graph["nodes"] if node["name"] in names}
        self._legal: dict[frozenset[str], bool] = {}
        self.best = sum(map(self.size.__getitem__, itertools.chain(*(one["reads"] for one in self.nodes.values()))))
        self.best += sum(self.size[name] for name in self.nodes)
        self._place(list(self.nodes), [])

    def _is_legal(self, group: frozenset[str]) -> bool:
        if group not in self._legal:
            order = [name for name in self.nodes if name in group]
            self._legal[group] = broken_rule(self.ir, order, on_chip_bytes=self.limit) is None
        return self._legal[group]

    def _place(self, waiting: list[str], groups: list[frozenset[str]]) -> None:
        """Put the next node into each group where it fits, and into one of its own."""
        if not waiting:
            self._price(groups, set())
            return
        name, rest = waiting[0], waiting[1:]
        for at, group in enumerate(groups):
            if self._is_legal(group | {name}):
                self._place(rest, [*groups[:at], group | {name}, *groups[at + 1 :]])
        self._place(rest, [*groups, frozenset((name,))])

    def _price(self, groups: list[frozenset[str]], seen: set[Any]) -> None:
        key = tuple(groups)
        if key in seen:
            return
        seen.add(key)
        reads = [{one for name in group for one in self.nodes[name]["reads"]} - group for group in groups]
        needed = self.kept.union(*reads)
        written: dict[str, int] = {}
        for at, group in enumerate(groups):
            for name in group:
                if name in needed:
                    written.setdefault(name, at)
        cost = sum(self.size[one] for names in reads for one in names) + sum(self.size[name] for name in written)
        if cost < self.best and self._can_run(reads, written):
            self.best = cost
        for at, names in enumerate(reads):
            for one in names & set(self.nodes):
                if self.nodes[one]["kind"] == "pointwise" and self._is_legal(groups[at] | {one}):
                    self._price([*groups[:at], groups[at] | {one}, *groups[at + 1 :]], seen)

    def _can_run(self, reads: list[set[str]], written: dict[str, int]) -> bool:
        waits = [{written[one] for one in names if one in written} for names in reads]
        left = set(range(len(reads)))
        while left:
            ready = {at for at in left if not waits[at] & left - {at} and at not in waits[at]}
            if not ready:
                return False
            left -= ready
        return True
