"""A model traced on fake tensors, by torch.export or make_fx, and what its graph holds of it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from edl_labs.errors import EdlError, UsageError
from edl_labs.graph.graph_parts import Node, TensorFacts
from edl_labs.graph.read_operators import OperatorReader
from edl_labs.roofline.operators.recorded_run import as_fake, tensors

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@dataclasses.dataclass(frozen=True)
class Traced:
    """What tracing found: the fields of a `Graph`."""

    name: str
    source: str
    nodes: tuple[Node, ...]
    tensors: Mapping[str, TensorFacts]
    outputs: tuple[str, ...]
    guards: tuple[str, ...]


def traced(model: Any, example: Any, keywords: Any, *, training: bool, dynamic: Mapping[int, Any]) -> Traced:
    """The operators of a model; EdlError where neither way can trace it."""
    if not callable(model):
        raise UsageError(
            f"a {type(model).__name__} cannot be traced", why="a model must be callable", next="pass an nn.Module"
        )
    model = getattr(model, "_orig_mod", model)
    name = type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", "function")
    module = model if isinstance(model, torch.nn.Module) else _Called(model)
    failures = []
    if not training:
        try:
            with _quiet():
                return _by_export(name, module, example, keywords, dynamic)
        except Exception as error:
            failures.append(f"torch.export: {_first_line(error)}")
    if dynamic:
        raise EdlError(
            f"{name} cannot be traced with dynamic sizes",
            why="; ".join(failures) or "a backward pass can be traced only with the sizes of the example",
            next="omit dynamic=",
        )
    for tracing in (_by_make_fx, _by_running):
        try:
            with _quiet():
                return tracing(name, module, example, keywords, training)
        except Exception as error:
            failures.append(f"make_fx: {_first_line(error)}")
    why = "; ".join(dict.fromkeys(failures))
    raise EdlError(
        f"{name} cannot be traced", why=why, next="check that model(*example) runs; the inputs must be tensors"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's warnings of what it cannot trace: another way is tried, or the error says it."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


class _Called(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        return self._function(*inputs, **keywords)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"


def _by_export(name: str, module: Any, example: Any, keywords: Any, dynamic: Mapping[int, Any]) -> Traced:
    shapes = _open_sizes(example, keywords, dynamic)
    with torch.no_grad():
        program = torch.export.export(module, example, keywords, dynamic_shapes=shapes)
    table = torch.export.default_decompositions()
    composite = {
        one: way
        for one, way in table.items()
        if isinstance(one, torch._ops.OpOverload) and one.has_kernel_for_dispatch_key(_COMPOSITE)
    }
    program = program.run_decompositions(composite)
    if any(_hides_a_graph(node) for node in program.graph.nodes):
        raise ValueError("part of the model is a separate graph")
    kinds = {
        torch.export.graph_signature.InputKind.PARAMETER: "parameter",
        torch.export.graph_signature.InputKind.BUFFER: "buffer",
    }
    given = [
        (spec.target or spec.arg.name, kinds.get(spec.kind, "buffer" if spec.target else "input"))
        for spec in program.graph_signature.input_specs
    ]
    reader = OperatorReader()
    reader.read(program.graph, given, backward_from=())
    guards = [*_input_guards(reader.tensors.values()), *map(_range_guard, program.range_constraints.items())]
    return Traced(name, "torch.export", *reader.found(), tuple(guards))


def _open_sizes(example: Any, keywords: Any, dynamic: Mapping[int, Any]) -> Any:
    if not dynamic:
        return None
    auto = torch.export.Dim.AUTO
    return (
        *(dict.fromkeys(dynamic.get(at, ()), auto) or None for at in range(len(example))),
        *(None for _ in keywords),
    )


def _range_guard(constraint: Any) -> str:
    symbol, span = constraint
    top = str(span.upper)
    return f"{symbol}: {span.lower} to {top}" if top.isdigit() and len(top) < 12 else f"{symbol}: {span.lower} or more"


def _hides_a_graph(node: Any) -> bool:
    """Whether a node runs a graph inside it that is no branch or loop: what a `no_grad` block becomes, say."""
    return isinstance(node.target, torch._ops.HigherOrderOperator) and node.target.name().startswith("wrap")


def _by_make_fx(name: str, module: Any, example: Any, keywords: Any, training: bool) -> Traced:
    """Through AOTAutograd, which makes a functional graph of what make_fx traces; backward with the forward pass."""
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import default_partition

    caught: list[Any] = []

    def partition(graph: Any, inputs: Any, **options: Any) -> Any:
        caught.append(graph)
        return default_partition(graph, inputs, **options)

    def compile_forward(gm: Any, example_inputs: Any) -> Any:
        caught.append(gm)
        return gm

    with as_fake(module, (example, keywords)) as (inputs, words):
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        if training:
            parameters = {key: one.requires_grad_(one.is_floating_point()) for key, one in parameters.items()}

        def run(parameters: Any, buffers: Any, inputs: Any, words: Any) -> Any:
            out = torch.func.functional_call(module, {**parameters, **buffers}, inputs, words)
            return list(tensors(out))

        with nullcontext() if training else torch.no_grad():
            compiled = aot_function(
                run, fw_compiler=compile_forward, bw_compiler=compile_forward, partition_fn=partition
            )
            compiled(parameters, buffers, inputs, words)
    given = [(key, "parameter") for key in parameters] + [(key, "buffer") for key in buffers]
    return _of_placeholders(name, caught[0].graph, given)


def _of_placeholders(name: str, graph: Any, given: list[tuple[str, str]]) -> Traced:
    places = [node for node in graph.nodes if node.op == "placeholder"]
    tangents = [node for node in places if "tangents" in node.name]
    inputs = len(places) - len(tangents) - len(given)
    labels = [*given, *((f"input{at}", "input") for at in range(inputs))]
    labels += [(f"gradient{at}", "gradient") for at in range(len(tangents))]
    reader = OperatorReader()
    reader.read(graph, labels, backward_from=tangents)
    return Traced(name, "make_fx", *reader.found(), tuple(_input_guards(reader.tensors.values())))


def _by_running(name: str, module: Any, example: Any, keywords: Any, training: bool) -> Traced:
    """Traced while it runs on the values of the example: what data decide is decided as here."""
    from torch.fx.experimental.proxy_tensor import make_fx

    flat, form = tree_flatten((example, keywords))
    if training or any(one.is_meta for one in tensors((example, keywords, list(module.parameters())))):
        raise ValueError("tensor values decide what runs, but tracing has no tensor values")
    parameters = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    at = [place for place, one in enumerate(flat) if isinstance(one, torch.Tensor)]

    def run(parameters: Any, found: Any) -> Any:
        given = list(flat)
        for place, one in zip(at, found, strict=True):
            given[place] = one
        inputs, words = torch.utils._pytree.tree_unflatten(given, form)
        return list(tensors(torch.func.functional_call(module, parameters, inputs, words)))

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        copies = tree_map_only(torch.Tensor, lambda one: one.detach().clone(), (parameters, [flat[i] for i in at]))
        graph = make_fx(
            torch.func.functionalize(run, remove="mutations"), tracing_mode="real", _error_on_data_dependent_ops=False
        )(*copies).graph
    buffers = dict(module.named_buffers())
    labels = [(key, "buffer" if key in buffers else "parameter") for key in parameters]
    found = _of_placeholders(name, graph, labels)
    return dataclasses.replace(found, guards=(*found.guards, "the values of the example decide what runs"))


def _input_guards(found: Any) -> list[str]:
    return [
        f"{one.name}: {one.dtype}, {' x '.join(map(str, one.shape)) or 'a scalar'}"
        for one in found
        if one.role == "input"
    ]
