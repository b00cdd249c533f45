"""Nodes and tensors of the IR from the nodes of a torch.fx graph: kind, loop, bytes and FLOPs of each operator."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from edl_labs.graph.graph_parts import Loop, Node, TensorFacts
from edl_labs.graph.operator_kinds import kind_of, loop_of
from edl_labs.roofline.operators.contractions import RAW
from edl_labs.roofline.operators.counted_call import counted, unique_bytes
from edl_labs.roofline.operators.recorder import RecordedCall, TensorSpec

_UNKNOWN = 1  # elements along a dimension whose size only data tell: the graph's guards say which


def size_of(size: Any) -> int:
    """A size as a number: of one that is open, the example's."""
    if isinstance(size, int):
        return size
    node = getattr(size, "node", None)
    hint = getattr(node, "hint", None) if node is not None else None
    return int(hint) if hint is not None else _UNKNOWN


def facts(name: str, tensor: torch.Tensor, *, base: str = "", role: str = "made") -> TensorFacts:
    """What the IR keeps of a (fake) tensor."""
    return TensorFacts(
        name,
        tuple(map(size_of, tensor.shape)),
        tuple(map(size_of, tensor.stride())) if tensor.layout is torch.strided else (1,) * tensor.dim(),
        str(tensor.dtype).removeprefix("torch."),
        tensor.dtype.itemsize,
        base or name,
        role,
    )


class OperatorReader:
    """Reads a graph node by node; afterwards `nodes` and `tensors` hold it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tensors: dict[str, TensorFacts] = {}
        self.outputs: list[str] = []
        self._values: dict[Any, Any] = {}  # what each fx node stands for: a tensor's name, several, or None
        self._offset: dict[str, int] = {}
        self._backward: set[Any] = set()

    def found(self) -> tuple[tuple[Node, ...], dict[str, TensorFacts], tuple[str, ...]]:
        """Nodes, tensors and outputs."""
        return tuple(self.nodes), self.tensors, tuple(dict.fromkeys(self.outputs))

    def read(self, graph: Any, labels: Sequence[tuple[str, str]], *, backward_from: Iterable[Any]) -> None:
        """Take in a whole graph; `labels` are names and roles of its placeholders, in their order."""
        given = iter(labels)
        self._backward = set(backward_from)
        for node in graph.nodes:
            value = node.meta.get("val")
            if node.op == "placeholder":
                name, role = next(given, (node.name, "input"))
                self._place(node, name, role, value)
            elif node.op == "get_attr":
                self._place(node, node.name, "buffer", value if value is not None else _attribute(node))
            elif node.op == "output":
                self.outputs = list(self._named(node.args))
            elif any(source in self._backward for source in node.all_input_nodes):
                self._backward.add(node)
                self._call(node, value)
            else:
                self._call(node, value)

    def _place(self, node: Any, name: str, role: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self.tensors[name] = facts(name, value, role=role)
            self._values[node] = name

    def _named(self, value: Any) -> list[str]:
        """The tensors in (nested) arguments."""
        if isinstance(value, torch.fx.Node):
            found = self._values.get(value)
            return [one for one in found if one] if isinstance(found, list) else [found] if found else []
        if isinstance(value, (tuple, list)):
            return [name for item in value for name in self._named(item)]
        if isinstance(value, Mapping):
            return self._named(list(value.values()))
        return []

    def _call(self, node: Any, value: Any) -> None:
        if node.target is operator.getitem:
            source = self._values.get(node.args[0])
            self._values[node] = source[node.args[1]] if isinstance(source, list) else source
            return
        schema = getattr(node.target, "_schema", None)
        if isinstance(value, torch.Tensor):
            made: Any = [(node.name, value)]
        elif isinstance(value, (tuple, list)):
            made = [(f"{node.name}.{at}", one) for at, one in enumerate(value)]
        else:  # sizes, and what gives no tensor at all
            return
        reads = list(dict.fromkeys(self._named([node.args, node.kwargs])))
        name = schema.name.partition("::")[2] if schema is not None else str(node.target)
        kind = kind_of(node.target, name)
        if kind == "view" and reads:
            base = self.tensors[reads[0]].base
            names = [self._add(label, one, base=base) for label, one in made]
        else:
            used = _used(node) if isinstance(value, (tuple, list)) else None
            names = [
                self._add(label, one) if used is None or at in used else None for at, (label, one) in enumerate(made)
            ]
            kept = [one for one in names if one]
            if kept or kind == "other":
                self._append(node, name, kind, reads, kept)
        self._values[node] = names if isinstance(value, (tuple, list)) else names[0]

    def _add(self, name: str, tensor: Any, *, base: str = "") -> str | None:
        if not isinstance(tensor, torch.Tensor):
            return None
        self.tensors[name] = facts(name, tensor, base=base)
        return name

    def _append(self, node: Any, name: str, kind: str, reads: list[str], makes: list[str]) -> None:
        given = [self.tensors[one] for one in reads]
        results = [self.tensors[one] for one in makes]
        flops, other = _flops(node)
        moved = _moved(node, results)
        written = sum(one.bytes for one in results)
        loop: Loop = loop_of(name, kind, node.args, given, results)
        direction = "backward" if node in self._backward else "forward"
        self.nodes.append(
            Node(
                *(node.name, name, kind, tuple(reads), tuple(makes), loop),
                *(max(moved - written, 0), written, flops, other, direction, _module(node)),
            )
        )


def _used(node: Any) -> set[int]:
    """Which of several results are used: what nobody asks for is not written by a compiler either."""
    return {user.args[1] for user in node.users if user.target is operator.getitem}


def _attribute(node: Any) -> Any:
    """What a graph holds beside its inputs; None for a call."""
    if node.op != "get_attr":
        return None
    found = node.graph.owning_module
    for part in node.target.split("."):
        found = getattr(found, part, None)
    return found


def _module(node: Any) -> str:
    stack = node.meta.get("nn_module_stack")
    return str(list(stack.values())[-1][0]).removeprefix("L['self'].").removeprefix("L['self']") if stack else ""


def _briefed(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return _briefed(value.meta["val"] if "val" in value.meta else _attribute(value))
    if isinstance(value, torch.Tensor):
        one = facts("", value)
        if value.layout is not torch.strided:
            return TensorSpec(one.shape, value.dtype, one.stride, id(value), False)
        place = hash((value.untyped_storage()._cdata, size_of(value.storage_offset())))
        return TensorSpec(one.shape, value.dtype, one.stride, place, False)
    if isinstance(value, (tuple, list)):
        return tuple(_briefed(item) for item in value)
    if isinstance(value, Mapping):
        return {key: _briefed(item) for key, item in value.items()}
    if isinstance(value, torch.SymInt):
        return size_of(value)
    return value


def _call_of(node: Any) -> RecordedCall | None:
    """The node as roofline's counter records calls."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    args, kwargs, out = (_briefed(one) for one in (node.args, dict(node.kwargs), node.meta.get("val")))
    raw = None
    packet = getattr(node.target, "_overloadpacket", node.target)
    if packet in RAW:
        values = torch.fx.map_arg(node.args, lambda one: one.meta.get("val"))
        raw = RAW[packet](values, dict(node.kwargs), node.meta.get("val"))
    return RecordedCall(node.target, args, kwargs, out, "", False, raw, False)


def _flops(node: Any) -> tuple[int, float]:
    call = _call_of(node)
    if call is None:
        return 0, 0.0
    found = counted(call)
    return found.contraction_flops, float(found.other_flops or 0.0)


def _moved(node: Any, results: list[TensorFacts]) -> int:
    """Bytes of the operator in a kernel of its own, results that nobody asks for left out."""
    call = _call_of(node)
    if call is None:
        given = _flat(_briefed([node.args, node.kwargs]))
        return sum(unique_bytes(one) for one in given) + sum(one.bytes for one in results)
    unused = sum(map(unique_bytes, _flat(call.out))) - sum(one.bytes for one in results)
    return max(counted(call).moved_bytes - unused, 0)


def _flat(value: Any) -> list[TensorSpec]:
    if isinstance(value, TensorSpec):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [one for item in value for one in _flat(item)] if isinstance(value, (tuple, list)) else []
